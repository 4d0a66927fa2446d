// The code that every request and every byte of output passes through, without any I/O.
#include <benchmark/benchmark.h>

#include <array>
#include <string>

#include "base/json.h"
#include "base/text.h"
#include "host/exec_request.h"
#include "net/chunked_decoder.h"
#include "net/head_parser.h"

namespace cay {
namespace {

constexpr size_t kPieceBytes = 64 * 1024;

std::string repeated(std::string_view part) {
  std::string text;
  while (text.size() + part.size() <= kPieceBytes) text.append(part);
  return text;
}

// What a command may print: the kinds differ in how much of it needs more than a look.
const std::string& output(int64_t kind) {
  static const std::array<std::string, 3> kinds = {
      repeated("2024-05-01 12:00:00 INFO step 118 loss 0.4711 lr 3.0e-4\n"),
      repeated("Größe: 12 µm, 温度 21 °C, ok ✓\n"),
      repeated("\x7f"
               "ELF\x02\x01\xff\xfe\x80\n")};
  return kinds.at(static_cast<size_t>(kind));
}

void setBytes(benchmark::State& state, size_t each) {
  state.SetBytesProcessed(static_cast<int64_t>(each) * state.iterations());
}

void requestHead(benchmark::State& state) {
  constexpr std::string_view kHead =
      "POST /v1/exec HTTP/1.1\r\nHost: 127.0.0.1:49983\r\nAccept: */*\r\n"
      "Accept-Encoding: gzip, deflate\r\nConnection: keep-alive\r\n"
      "User-Agent: unknown/None; hf_hub/2.4.0; python/3.11.2\r\n"
      "X-Sandbox-Token: 0123456789abcdef0123456789abcdef\r\n"
      "Content-Type: application/json\r\nContent-Length: 27\r\n\r\n";
  for (auto _ : state) {
    net::RequestParser parser(64 * 1024);
    net::RequestHead head;
    benchmark::DoNotOptimize(parser.parse(kHead, head));
    benchmark::DoNotOptimize(head);
  }
}
BENCHMARK(requestHead);

void execRequest(benchmark::State& state) {
  constexpr std::string_view kBody =
      R"({"cmd":["python3","-m","http.server"],"env":{"A":"1","B":2},"cwd":"/tmp","timeout":60})";
  const host::ExecDefaults defaults{.env = {"PATH=/usr/bin:/bin", "HOME=/root"}, .cwd = "/root"};
  for (auto _ : state) {
    benchmark::DoNotOptimize(host::parseExecRequest(kBody, sandbox::Kind::kExec, {}, defaults));
  }
}
BENCHMARK(execRequest);

void utf8Decode(benchmark::State& state) {
  const std::string& bytes = output(state.range(0));
  std::string text;
  for (auto _ : state) {
    Utf8Decoder decoder;
    text.clear();
    decoder.feed(bytes, text);
    benchmark::DoNotOptimize(text.data());
  }
  setBytes(state, bytes.size());
}
BENCHMARK(utf8Decode)->ArgName("ascii-text-binary")->Arg(0)->Arg(1)->Arg(2);

void jsonString(benchmark::State& state) {
  const std::string text = toValidUtf8(output(state.range(0)));
  std::string event;
  for (auto _ : state) {
    event.clear();
    json::appendString(event, text);
    benchmark::DoNotOptimize(event.data());
  }
  setBytes(state, text.size());
}
BENCHMARK(jsonString)->ArgName("ascii-text-binary")->Arg(0)->Arg(1)->Arg(2);

void base64(benchmark::State& state) {
  const std::string& bytes = output(2);
  for (auto _ : state) benchmark::DoNotOptimize(base64Encode(bytes));
  setBytes(state, bytes.size());
}
BENCHMARK(base64);

void chunkedBody(benchmark::State& state) {
  std::string wire;
  for (int i = 0; i < 8; ++i) wire += "2000\r\n" + std::string(0x2000, 'x') + "\r\n";
  wire += "0\r\n\r\n";
  std::string body(kPieceBytes, '\0');
  for (auto _ : state) {
    net::ChunkedDecoder decoder;
    for (std::string_view left = wire; !decoder.done();) {
      const auto step = decoder.decode(left, body);
      if (!step) return state.SkipWithError("a broken chunked body");
      left.remove_prefix(step->consumed);
    }
  }
  setBytes(state, kPieceBytes);
}
BENCHMARK(chunkedBody);

}  // namespace
}  // namespace cay

BENCHMARK_MAIN();
