#include "host/exec_request.h"

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstring>

#include "base/ids.h"
#include "base/json.h"
#include "base/text.h"
#include "files/path_text.h"
#include "host/body_fields.h"
#include "sys/signal_name.h"

namespace cay::host {
namespace {

using sandbox::ExecSpec;
using sandbox::Kind;

Result<> readCommand(const json::Object& body, ExecSpec& spec) {
  const json::Value* cmd = field(body, "cmd");
  if (cmd == nullptr)
    return fail(Code::kInvalid, "'cmd' is missing: a command string or a list of arguments");
  const json::Value* shell = field(body, "shell");
  if (shell != nullptr && !shell->is_bool()) return wrong("shell", "must be true or false");
  if (cmd->is_string()) {
    if (shell != nullptr && !shell->get_bool()) {
      return wrong("shell", "is false, but 'cmd' is a string: a list of arguments is needed then");
    }
    CAY_ASSIGN(std::string line, plainText(*cmd, "cmd"));
    spec.argv = {"/bin/sh", "-c", std::move(line)};
    return {};
  }
  if (!cmd->is_array()) return wrong("cmd", "must be a string or a list of strings");
  if (shell != nullptr && shell->get_bool()) {
    return wrong("shell", "is true, but 'cmd' is a list: a command string is needed then");
  }
  if (cmd->get_array().empty()) return wrong("cmd", "must not be an empty list");
  for (const json::Value& argument : cmd->get_array()) {
    CAY_ASSIGN(std::string text, plainText(argument, "cmd"));
    spec.argv.push_back(std::move(text));
  }
  if (spec.argv.front().empty()) return wrong("cmd", "must begin with the name of a program");
  return {};
}

Result<> readTimeout(const json::Object& body, ExecSpec& spec) {
  const json::Value* timeout = field(body, "timeout");
  if (timeout == nullptr) return {};
  if (!timeout->is_number()) return wrong("timeout", "must be a number of seconds");
  const auto seconds = timeout->to_number<double>();
  if (!std::isfinite(seconds) || seconds <= 0)
    return wrong("timeout", "must be greater than 0 seconds");
  constexpr double kLongestSeconds = 1e9;  // more is no limit in practice
  spec.timeoutMs =
      std::max<int64_t>(1, static_cast<int64_t>(std::min(seconds, kLongestSeconds) * 1000));
  return {};
}

Result<> readStdin(const json::Object& body, ExecSpec& spec) {
  spec.stdinMode = spec.kind == Kind::kProcess ? sandbox::Stdin::kOpenPipe : sandbox::Stdin::kNull;
  const json::Value* input = field(body, "stdin");
  if (input == nullptr) return {};
  if (spec.kind == Kind::kProcess)
    return wrong("stdin", "is not for processes: send it to .../stdin");
  if (!input->is_string()) return wrong("stdin", "must be a string");
  spec.stdinMode = sandbox::Stdin::kData;
  spec.stdinData = std::string(input->get_string());
  return {};
}

Result<> readDisconnect(const json::Object& body, bool hasKey, ExecSpec& spec) {
  using sandbox::OnDisconnect;
  spec.onDisconnect = hasKey ? OnDisconnect::kKeepShort : OnDisconnect::kKill;
  if (spec.kind == Kind::kProcess) spec.onDisconnect = OnDisconnect::kKeep;
  const json::Value* choice = field(body, "on_disconnect");
  if (choice == nullptr) return {};
  if (!choice->is_string()) return wrong("on_disconnect", "must be \"kill\" or \"keep\"");
  const std::string_view name = choice->get_string();
  if (name != "kill" && name != "keep")
    return wrong("on_disconnect", "must be \"kill\" or \"keep\"");
  if (spec.kind == Kind::kExec) {
    spec.onDisconnect = name == "keep" ? OnDisconnect::kKeep : OnDisconnect::kKill;
  }
  return {};
}

Result<> readDirectory(const json::Object& body, const ExecDefaults& defaults, ExecSpec& spec) {
  spec.cwd = defaults.cwd;
  const json::Value* cwd = field(body, "cwd");
  if (cwd == nullptr) return {};
  CAY_ASSIGN(const std::string path, plainText(*cwd, "cwd"));
  if (path.empty()) return wrong("cwd", "must not be empty");
  if (defaults.rootedAtHome) {
    const std::string clamped = files::clamped(path);
    const bool isReal = clamped == defaults.cwd || clamped.starts_with(defaults.cwd + "/");
    spec.cwd = isReal ? clamped : clamped == "/" ? defaults.cwd : defaults.cwd + clamped;
  } else {
    spec.cwd = path.starts_with('/') ? path : defaults.cwd + "/" + path;
  }
  return {};
}

}  // namespace

Result<OutputEncoding> parseEncoding(std::string_view name) {
  if (name == "text" || name == "utf-8") return OutputEncoding::kText;
  if (name == "base64") return OutputEncoding::kBase64;
  return wrong("encoding", "must be \"text\" or \"base64\"");
}

Result<ExecRequest> parseExecRequest(std::string_view body, Kind kind, std::string_view key,
                                     const ExecDefaults& defaults) {
  CAY_ASSIGN(const json::Object object, bodyObject(body));
  ExecRequest request;
  ExecSpec& spec = request.start.spec;
  spec.kind = kind;
  spec.env = defaults.env;
  CAY_TRY(readCommand(object, spec));
  CAY_TRY(readEnvironment(object, spec.env));
  CAY_TRY(readTimeout(object, spec));
  CAY_TRY(readStdin(object, spec));
  CAY_TRY(readDisconnect(object, !key.empty(), spec));
  CAY_TRY(readDirectory(object, defaults, spec));
  if (const json::Value* encoding = field(object, "encoding")) {
    if (!encoding->is_string()) return wrong("encoding", "must be \"text\" or \"base64\"");
    CAY_ASSIGN(request.encoding, parseEncoding(encoding->get_string()));
  }
  if (const json::Value* tag = field(object, "tag")) {
    CAY_ASSIGN(request.start.tag, plainText(*tag, "tag"));
  }
  if (kind == Kind::kProcess) request.start.cmd = json::serialize(object.at("cmd"));
  if (!key.empty()) {
    request.start.key = key;
    request.start.fingerprint =
        fingerprint(std::string(kind == Kind::kExec ? "exec:" : "process:") + std::string(body));
  }
  return request;
}

Result<int> parseSignalRequest(std::string_view body) {
  CAY_ASSIGN(const json::Value parsed, json::parse(body));
  const json::Value* value = parsed.is_object() ? field(parsed.get_object(), "signal") : nullptr;
  if (value == nullptr)
    return fail(Code::kInvalid, "'signal' is missing: a name such as \"INT\" or a number");
  if (value->is_int64()) {
    const int64_t number = value->get_int64();
    if (number < 1 || number >= NSIG) return wrong("signal", "must be a number from 1 to 64");
    return static_cast<int>(number);
  }
  if (!value->is_string()) return wrong("signal", "must be a name such as \"INT\" or a number");
  std::string_view name = value->get_string();
  if (name.starts_with("SIG")) name.remove_prefix(3);
  if (const int number = sys::signalNumber(name); number != 0) return number;
  return wrong("signal", "is not a signal that is known here: " + quoted(name));
}

}  // namespace cay::host
