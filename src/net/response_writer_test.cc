// How answers look on the wire: framing, how many writes they take, files, and answers that break
// off.
#include "net/response_writer.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include <future>

#include "net/event.h"
#include "testing/temp_dir.h"
#include "testing/test_server.h"

namespace cay::net {
namespace {

using cay::testing::RawClient;
using cay::testing::TempDir;
using cay::testing::TestServer;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

ResponseHead withLength(uint64_t length) {
  ResponseHead head;
  head.fields.add("Content-Length", std::to_string(length));
  return head;
}

void begin(Response& response, ResponseHead head) {
  EXPECT_TRUE(response.begin(std::move(head)));
}

class Answers final : public Handler {
 public:
  Task<> handle(const RequestHead& head, Body&, Response& response) override {
    const std::string_view path = head.path;
    if (path == "/whole") {
      (void)co_await send(response, {}, std::string(10'000, 'w'));
    } else if (path == "/pieces") {
      begin(response, {});
      (void)co_await response.write("one");
      co_await proceed.wait();
      (void)co_await response.write("");
      (void)co_await response.finish("last");
    } else if (path == "/flush") {
      begin(response, {});
      (void)co_await response.write("");
      co_await proceed.wait();
      (void)co_await response.finish();
    } else if (path == "/trailers") {
      Fields trailers;
      trailers.add("X-Sum", "1");
      trailers.add("Content-Length", "7");
      trailers.add("X-Evil", "a\r\nb");
      begin(response, {});
      (void)co_await response.write("body");
      (void)co_await response.finishWithTrailers(trailers);
    } else if (path == "/empty") {
      begin(response, {.status = 204, .fields = {}});
      (void)co_await response.finish();
    } else if (path == "/short") {
      begin(response, withLength(10));
      (void)co_await response.write("12345");
      last = co_await response.finish();
    } else if (path == "/long") {
      begin(response, withLength(4));
      last = co_await response.write("12345");
    } else if (path == "/unfinished") {
      begin(response, {});
      (void)co_await response.write("12345");
    } else if (path == "/split") {
      ResponseHead bad;
      bad.fields.add("X", "a\r\nSet-Cookie: evil");
      last = response.begin(std::move(bad));
      ResponseHead owned;
      owned.fields.add("transfer-encoding", "gzip");
      EXPECT_FALSE(response.begin(std::move(owned)));
      (void)co_await sendJson(response, 200, "{}");
    } else if (path == "/file") {
      const Fd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
      // Out of the page cache, where the file system has one.
      (void)::fsync(fd.get());
      (void)::posix_fadvise(fd.get(), 0, 0, POSIX_FADV_DONTNEED);
      begin(response, announce ? withLength(*announce) : ResponseHead{});
      last = co_await response.sendFile(fd.get(), offset, length);
      if (last) last = co_await response.finish("!");
    }
  }

  Event proceed;
  Result<> last;
  std::string file;
  uint64_t offset = 0;
  uint64_t length = 0;
  std::optional<uint64_t> announce;
};

class ResponseTest : public ::testing::Test {
 protected:
  std::string get(std::string_view path, std::string_view version = "1.1",
                  std::string_view fields = "") {
    RawClient client = server_.connect();
    client.send("GET " + std::string(path) + " HTTP/" + std::string(version) + "\r\nHost: x\r\n" +
                std::string(fields) + "\r\n");
    if (version == "1.1") client.shutDownSending();
    std::string answer = client.receiveToEnd();
    endedInOrder_ = client.endedInOrder();
    return answer;
  }
  void proceed() {
    server_.loop().call([&] { answers_.proceed.notifyAll(); });
  }

  // What the handler's last call gave.
  Result<> last() {
    return server_.loop().call([&] { return answers_.last; });
  }

  Answers answers_;
  TestServer server_{answers_};
  bool endedInOrder_ = false;
};

TEST_F(ResponseTest, AWholeAnswerIsOneSendWithItsLength) {
  RawClient client = server_.connect();
  client.send("GET /whole HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(client.receiveAnswer(),
            "HTTP/1.1 200 OK\r\nContent-Length: 10000\r\n\r\n" + std::string(10'000, 'w'));
  EXPECT_EQ(client.dataSegments(), 1U);
}

TEST_F(ResponseTest, PiecesAreChunksAndTheLastOneLeavesWithTheEnd) {
  RawClient client = server_.connect();
  client.send("GET /pieces HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(client.receiveOnce(),
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n");
  EXPECT_EQ(client.dataSegments(), 1U);
  proceed();
  EXPECT_EQ(client.receiveUntil("0\r\n\r\n"), "4\r\nlast\r\n0\r\n\r\n");
  EXPECT_EQ(client.dataSegments(), 2U);
}

TEST_F(ResponseTest, AnEmptyPieceSendsTheHeadAtOnce) {
  RawClient client = server_.connect();
  client.send("GET /flush HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(client.receiveOnce(), "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
  proceed();
  EXPECT_EQ(client.receiveOnce(), "0\r\n\r\n");
}

TEST_F(ResponseTest, TrailersFollowTheLastChunk) {
  EXPECT_EQ(get("/trailers"),
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
            "4\r\nbody\r\n0\r\nX-Sum: 1\r\n\r\n");
}

TEST_F(ResponseTest, NoContentHasNeitherBodyNorLength) {
  EXPECT_EQ(get("/empty"), "HTTP/1.1 204 No Content\r\n\r\n");
}

TEST_F(ResponseTest, HttpOneZeroGetsTheBodyUntilTheEnd) {
  EXPECT_EQ(get("/trailers", "1.0"), "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nbody");
  EXPECT_TRUE(endedInOrder_);
  RawClient client = server_.connect();
  client.send("GET /whole HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  EXPECT_THAT(client.receiveUntil("\r\n\r\n"), HasSubstr("Connection: keep-alive\r\n"));
  client.receiveExactly(10'000);
  client.send("GET /empty HTTP/1.0\r\n\r\n");
  EXPECT_THAT(client.receiveToEnd(), StartsWith("HTTP/1.1 204 "));
}

TEST_F(ResponseTest, ABrokenOffAnswerNeverLooksComplete) {
  EXPECT_THAT(get("/unfinished"), EndsWith("\r\n\r\n5\r\n12345\r\n"));
  EXPECT_THAT(get("/short"), EndsWith("\r\n\r\n12345"));
  EXPECT_FALSE(last());
  EXPECT_EQ(get("/long"), "");
  EXPECT_FALSE(last());
  // Without a framing that would show it, the connection is reset.
  get("/unfinished", "1.0");
  EXPECT_FALSE(endedInOrder_);
}

TEST_F(ResponseTest, FieldsCannotBreakOutOfTheHead) {
  const std::string answer = get("/split");
  EXPECT_FALSE(last());
  EXPECT_THAT(answer, AllOf(HasSubstr("{}"), Not(HasSubstr("evil"))));
}

TEST_F(ResponseTest, FilesAreSentByLengthOrInOneChunk) {
  const TempDir folder;
  std::string content;
  for (int i = 0; content.size() < (5U << 20); ++i) content += std::to_string(i) + ",";
  answers_.file = folder.write("data", content);
  answers_.offset = 1000;
  answers_.length = 4U << 20;
  const std::string part = content.substr(1000, 4U << 20);

  answers_.announce = part.size() + 1;
  EXPECT_TRUE(get("/file").ends_with("\r\n\r\n" + part + "!"));
  answers_.announce.reset();
  EXPECT_TRUE(get("/file").ends_with("\r\n\r\n400000\r\n" + part + "\r\n1\r\n!\r\n0\r\n\r\n"));
  EXPECT_TRUE(get("/file", "1.0").ends_with("\r\n\r\n" + part + "!"));
}

TEST_F(ResponseTest, TheHeadTravelsWithTheFirstBytesOfAFile) {
  const TempDir folder;
  answers_.file = folder.write("data", "content");
  answers_.length = 7;
  answers_.announce = 8;
  RawClient client = server_.connect();
  client.send("GET /file HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(client.receiveAnswer(), "HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\ncontent!");
  EXPECT_EQ(client.dataSegments(), 2U) << "head and file, then the end";
}

TEST_F(ResponseTest, AFileThatIsShorterThanAnnouncedEndsTheConnection) {
  const TempDir folder;
  answers_.file = folder.write("data", "content");
  answers_.length = 1000;
  answers_.announce = 1001;
  EXPECT_THAT(get("/file"), EndsWith("\r\n\r\ncontent"));
  ASSERT_FALSE(last());
  EXPECT_EQ(last().error().code, Code::kInternal);
}

TEST_F(ResponseTest, AClientThatLeavesDuringAFileEndsTheSending) {
  const TempDir folder;
  answers_.file = folder.write("data", std::string(32U << 20, 'x'));
  answers_.length = 32U << 20;
  answers_.announce = answers_.length + 1;
  RawClient client = RawClient::connect(server_.port(), 4096);
  client.send("GET /file HTTP/1.1\r\nHost: x\r\n\r\n");
  client.receiveOnce();
  client.reset();
  EXPECT_TRUE(server_.awaitConnections(0));
  EXPECT_FALSE(last());
}

}  // namespace
}  // namespace cay::net
