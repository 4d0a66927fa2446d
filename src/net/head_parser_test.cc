#include "net/head_parser.h"

#include <gmock/gmock.h>

#include <vector>

namespace cay::net {
namespace {

constexpr size_t kMaxHead = size_t{64} * 1024;

struct Parsed {
  int status = 0;  // of the refusal; 0: accepted; -1: incomplete
  size_t size = 0;
  RequestHead head;
};

Parsed parseRequest(std::string_view bytes, size_t maxHead = kMaxHead) {
  Parsed parsed;
  RequestParser parser(maxHead);
  const auto size = parser.parse(bytes, parsed.head);
  parsed.status = !size ? size.error().status : *size == 0 ? -1 : 0;
  parsed.size = size.value_or(0);
  return parsed;
}

std::string withFields(std::string_view fields) {
  return "POST /v1/exec HTTP/1.1\r\nHost: localhost\r\n" + std::string(fields) + "\r\n";
}

TEST(RequestParser, ReadsAnOrdinaryRequest) {
  const Parsed parsed = parseRequest(
      "PUT /v1/files/write?path=%2Fa%20b&mode=644 HTTP/1.1\r\nhost: localhost:49983\r\n"
      "X-D: 1\r\nX-D:2 \r\nContent-Length: 12\r\nExpect: 100-continue\r\n\r\nrest");
  ASSERT_EQ(parsed.status, 0);
  EXPECT_EQ(parsed.head.method, "PUT");
  EXPECT_EQ(parsed.head.target, "/v1/files/write?path=%2Fa%20b&mode=644");
  EXPECT_EQ(parsed.head.path, "/v1/files/write");
  EXPECT_EQ(parsed.head.query, "path=%2Fa%20b&mode=644");
  EXPECT_EQ(parsed.head.fields.count("x-d"), 2U);
  EXPECT_EQ(parsed.head.fields.get("x-d"), "1");
  EXPECT_EQ(parsed.head.framing, Framing::kLength);
  EXPECT_EQ(parsed.head.contentLength, 12U);
  EXPECT_TRUE(parsed.head.keepAlive);
  EXPECT_TRUE(parsed.head.expectContinue);
}

struct Case {
  const char* what;
  std::string bytes;
  int status;
};

const std::vector<Case>& refusals() {
  using namespace std::string_literals;
  static const std::vector<Case> cases = {
      {"folded line", withFields("X: a\r\n b\r\n"), 400},
      {"folded line with a tab", withFields("X: a\r\n\tb\r\n"), 400},
      {"white space before the first field", "GET / HTTP/1.1\r\n Host: a\r\n\r\n", 400},
      {"bare LF after the start line", "GET / HTTP/1.1\nHost: a\r\n\r\n", 400},
      {"bare LF after a field", withFields("X: a\nY: b\r\n"), 400},
      {"bare LF as the end", "GET / HTTP/1.1\r\nHost: a\r\n\n", 400},
      {"LF alone", "\n", 400},
      {"bare CR in a value", withFields("X: a\rb\r\n"), 400},
      {"CR CR LF", withFields("X: a\r\r\n"), 400},
      {"NUL in a value", withFields("X: a\0b\r\n"s), 400},
      {"NUL in a name", withFields("X\0: a\r\n"s), 400},
      {"control byte in a value", withFields("X: a\x01\r\n"), 400},
      {"DEL in a value", withFields("X: a\x7f\r\n"), 400},
      {"space before the colon", withFields("Content-Length : 4\r\n"), 400},
      {"tab before the colon", withFields("Content-Length\t: 4\r\n"), 400},
      {"space in a name", withFields("Content Length: 4\r\n"), 400},
      {"no colon", withFields("Nonsense\r\n"), 400},
      {"empty name", withFields(": x\r\n"), 400},
      {"non-ASCII name", withFields("X\xC3\xA9: x\r\n"), 400},
      {"no Host", "GET / HTTP/1.1\r\n\r\n", 400},
      {"two Hosts", withFields("Host: localhost\r\n"), 400},
      {"two different Hosts", withFields("Host: evil\r\n"), 400},
      {"empty Host", "GET / HTTP/1.1\r\nHost:\r\n\r\n", 400},
      {"list of Hosts", "GET / HTTP/1.1\r\nHost: a, b\r\n\r\n", 400},
      {"user name in Host", "GET / HTTP/1.1\r\nHost: a@b\r\n\r\n", 400},
      {"path in Host", "GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", 400},
      {"Transfer-Encoding and Content-Length",
       withFields("Transfer-Encoding: chunked\r\nContent-Length: 4\r\n"), 400},
      {"Content-Length and Transfer-Encoding",
       withFields("Content-Length: 4\r\nTransfer-Encoding: chunked\r\n"), 400},
      {"Transfer-Encoding gzip, chunked", withFields("Transfer-Encoding: gzip, chunked\r\n"), 400},
      {"Transfer-Encoding chunked, identity",
       withFields("Transfer-Encoding: chunked, identity\r\n"), 400},
      {"Transfer-Encoding identity", withFields("Transfer-Encoding: identity\r\n"), 400},
      {"Transfer-Encoding xchunked", withFields("Transfer-Encoding: xchunked\r\n"), 400},
      {"Transfer-Encoding with a parameter", withFields("Transfer-Encoding: chunked;a=b\r\n"), 400},
      {"Transfer-Encoding quoted", withFields("Transfer-Encoding: \"chunked\"\r\n"), 400},
      {"empty Transfer-Encoding", withFields("Transfer-Encoding:\r\n"), 400},
      {"two Transfer-Encodings",
       withFields("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"), 400},
      {"Transfer-Encodings apart",
       withFields("Transfer-Encoding: identity\r\nTransfer-Encoding: chunked\r\n"), 400},
      {"vertical tab in Transfer-Encoding", withFields("Transfer-Encoding: \x0b chunked\r\n"), 400},
      {"Transfer-Encoding in HTTP/1.0",
       "POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
      {"two equal lengths", withFields("Content-Length: 4\r\nContent-Length: 4\r\n"), 400},
      {"two lengths", withFields("Content-Length: 4\r\nContent-Length: 5\r\n"), 400},
      {"list of lengths", withFields("Content-Length: 4, 4\r\n"), 400},
      {"length +4", withFields("Content-Length: +4\r\n"), 400},
      {"length -4", withFields("Content-Length: -4\r\n"), 400},
      {"length 0x4", withFields("Content-Length: 0x4\r\n"), 400},
      {"length 4.0", withFields("Content-Length: 4.0\r\n"), 400},
      {"length with a space", withFields("Content-Length: 4 4\r\n"), 400},
      {"empty length", withFields("Content-Length:\r\n"), 400},
      {"length beyond 64 bits", withFields("Content-Length: 18446744073709551616\r\n"), 400},
      {"empty target", "GET  HTTP/1.1\r\nHost: a\r\n\r\n", 400},
      {"no target", "GET HTTP/1.1\r\nHost: a\r\n\r\n", 400},
      {"two spaces before the version", "GET /  HTTP/1.1\r\nHost: a\r\n\r\n", 400},
      {"space in the target", "GET /a b HTTP/1.1\r\nHost: a\r\n\r\n", 400},
      {"tab as a separator", "GET\t/ HTTP/1.1\r\nHost: a\r\n\r\n", 400},
      {"relative target", "GET x HTTP/1.1\r\nHost: a\r\n\r\n", 400},
      {"fragment", "GET /a#b HTTP/1.1\r\nHost: a\r\n\r\n", 400},
      {"https target", "GET https://a/ HTTP/1.1\r\nHost: a\r\n\r\n", 400},
      {"target without a host", "GET http:///x HTTP/1.1\r\nHost: a\r\n\r\n", 400},
      {"target of another host", "GET http://b/x HTTP/1.1\r\nHost: a\r\n\r\n", 400},
      {"target with a user", "GET http://u@a/x HTTP/1.1\r\nHost: a\r\n\r\n", 400},
      {"asterisk with GET", "GET * HTTP/1.1\r\nHost: a\r\n\r\n", 400},
      {"no version", "GET /\r\nHost: a\r\n\r\n", 400},
      {"lower-case protocol", "GET / http/1.1\r\nHost: a\r\n\r\n", 400},
      {"version with three parts", "GET / HTTP/1.1.1\r\nHost: a\r\n\r\n", 400},
      {"something after the version", "GET / HTTP/1.1 x\r\nHost: a\r\n\r\n", 400},
      {"bad method", "G@T / HTTP/1.1\r\nHost: a\r\n\r\n", 400},
      {"two empty lines in front", "\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", 400},
      {"CONNECT", "CONNECT a:80 HTTP/1.1\r\nHost: a:80\r\n\r\n", 405},
      {"another expectation", withFields("Expect: 200-ok\r\n"), 417},
      {"two expectations", withFields("Expect: 100-continue\r\nExpect: 100-continue\r\n"), 417},
      {"HTTP/2.0", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505},
      {"HTTP/1.2", "GET / HTTP/1.2\r\nHost: a\r\n\r\n", 505},
      {"HTTP/0.9", "GET / HTTP/0.9\r\nHost: a\r\n\r\n", 505},
  };
  return cases;
}

TEST(RequestParser, RefusesEverythingAmbiguous) {
  for (const Case& test : refusals()) {
    EXPECT_EQ(parseRequest(test.bytes).status, test.status) << test.what;
  }
}

TEST(RequestParser, JudgesTheSameHoweverTheBytesAreCut) {
  std::vector<Case> cases = refusals();
  cases.push_back({"good", withFields("Content-Length: 4\r\n"), 0});
  for (const Case& test : cases) {
    RequestParser parser(kMaxHead);
    RequestHead head;
    int status = -1;
    for (size_t size = 1; size <= test.bytes.size() && status == -1; ++size) {
      const auto result = parser.parse(std::string_view(test.bytes).substr(0, size), head);
      status = !result ? result.error().status : *result == 0 ? -1 : 0;
    }
    EXPECT_EQ(status, test.status) << test.what;
  }
}

TEST(RequestParser, ReadsConnectWhereItIsAllowed) {
  const auto parse = [](const std::string& target, std::string_view fields = "") {
    Parsed parsed;
    RequestParser parser(kMaxHead, Connects::kAllowed);
    const std::string bytes = "CONNECT " + target + " HTTP/1.1\r\nHost: a:1\r\n" +
                              std::string(fields) + "\r\nrest of the tunnel";
    const auto size = parser.parse(bytes, parsed.head);
    parsed.status = size ? 0 : size.error().status;
    return parsed;
  };
  for (const char* target : {"a:1", "abc--8000.cay.localhost:7343", "[::1]:443", "1.2.3.4:65535"}) {
    const Parsed parsed = parse(target);
    EXPECT_EQ(parsed.status, 0) << target;
    EXPECT_EQ(parsed.head.target, target);
    EXPECT_EQ(parsed.head.path, "");
    EXPECT_EQ(parsed.head.query, "");
    EXPECT_EQ(parsed.head.framing, Framing::kNone);
  }
  for (const char* target :
       {"a",     "a:",    ":1",      "a:0",   "a:65536",    "a:+1", "a:1x", "/",
        "/a:1",  "*",     "::1:443", "a:b:1", "[]:1",       "[a:1", "a]:1", "[[::1]]:1",
        "u@a:1", "a/b:1", "a?b:1",   "a#b:1", "http://a:1", "a,b:1"}) {
    EXPECT_EQ(parse(target).status, 400) << target;
  }
  // What follows the head is not a body.
  for (const char* field :
       {"Content-Length: 4\r\n", "Content-Length: 0\r\n", "Transfer-Encoding: chunked\r\n"}) {
    EXPECT_EQ(parse("a:1", field).status, 400) << field;
  }
  // Other requests are as strict as ever.
  RequestParser parser(kMaxHead, Connects::kAllowed);
  RequestHead head;
  EXPECT_FALSE(parser.parse("GET a:1 HTTP/1.1\r\nHost: a\r\n\r\n", head));
}

TEST(RequestParser, AcceptsWhatOnlyLooksOdd) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"GET /a%2Fb?x=/&y=[1] HTTP/1.1\r\nHost: a\r\n\r\n", "/a%2Fb?x=/&y=[1]"},
      {"GET http://Example:80/x?y HTTP/1.1\r\nHost: example:80\r\n\r\n", "/x?y"},
      {"GET HTTP://a?y HTTP/1.1\r\nHost: a\r\n\r\n", "/?y"},
      {"GET http://a HTTP/1.1\r\nHost: a\r\n\r\n", "/"},
      {"OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", "*"},
      {"\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", "/"},
      {"GET / HTTP/1.0\r\n\r\n", "/"},
      {"GET //x HTTP/1.1\r\nHost: [::1]:80\r\n\r\n", "//x"},
      {"BREW /\xC3\xA9 HTTP/1.1\r\nHost: a\r\nX:\r\nY: \t a\tb \t\r\n\r\n", "/\xC3\xA9"},
      {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding:  CHUNKED \r\n\r\n", "/"},
  };
  for (const auto& [bytes, target] : cases) {
    const Parsed parsed = parseRequest(bytes);
    EXPECT_EQ(parsed.status, 0) << bytes;
    EXPECT_EQ(parsed.head.target, target);
    EXPECT_EQ(parsed.size, bytes.size());
  }
}

TEST(RequestParser, KeepsConnectionsByVersionAndWish) {
  EXPECT_TRUE(parseRequest("GET / HTTP/1.1\r\nHost: a\r\n\r\n").head.keepAlive);
  EXPECT_FALSE(
      parseRequest("GET / HTTP/1.1\r\nHost: a\r\nConnection: x, Close\r\n\r\n").head.keepAlive);
  EXPECT_FALSE(parseRequest("GET / HTTP/1.0\r\n\r\n").head.keepAlive);
  EXPECT_TRUE(parseRequest("GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n").head.keepAlive);
}

TEST(RequestParser, BoundsTheHeadInBytesAndFields) {
  const std::string large = withFields("X: " + std::string(1000, 'a') + "\r\n");
  EXPECT_EQ(parseRequest(large, large.size()).status, 0);
  EXPECT_EQ(parseRequest(large, large.size() - 1).status, 431);
  EXPECT_EQ(parseRequest(std::string(100, 'a'), 100).status, 431);
  std::string many;
  for (int i = 0; i < 255; ++i) many += "X: y\r\n";
  EXPECT_EQ(parseRequest(withFields(many)).status, 0);
  EXPECT_EQ(parseRequest(withFields(many + "X: y\r\n")).status, 431);
}

TEST(RequestParser, GoesOnWithTheNextHead) {
  const std::string first = withFields("");
  const std::string second = "GET /second HTTP/1.1\r\nHost: a\r\n\r\n";
  std::string bytes = first + second;
  RequestParser parser(kMaxHead);
  RequestHead head;
  ASSERT_EQ(parser.parse(bytes, head), first.size());
  bytes.erase(0, first.size());
  ASSERT_EQ(parser.parse(bytes, head), second.size());
  EXPECT_EQ(head.path, "/second");
  EXPECT_EQ(head.fields.size(), 1U);
}

Framing framingOf(std::string_view head, bool toHead = false) {
  ResponseParser parser(kMaxHead);
  ResponseStart start;
  const auto size = parser.parse(head, toHead, start);
  EXPECT_TRUE(size && *size == head.size()) << head;
  return start.body.framing;
}

TEST(ResponseParser, KnowsHowEachAnswerEnds) {
  EXPECT_EQ(framingOf("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n"), Framing::kLength);
  EXPECT_EQ(framingOf("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"), Framing::kChunked);
  EXPECT_EQ(framingOf("HTTP/1.1 200 OK\r\n\r\n"), Framing::kUntilClose);
  EXPECT_EQ(framingOf("HTTP/1.0 200 OK\r\n\r\n"), Framing::kUntilClose);
  EXPECT_EQ(framingOf("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n", true), Framing::kNone);
  EXPECT_EQ(framingOf("HTTP/1.1 204 No Content\r\n\r\n"), Framing::kNone);
  EXPECT_EQ(framingOf("HTTP/1.1 304 Not Modified\r\nContent-Length: 3\r\n\r\n"), Framing::kNone);
}

TEST(ResponseParser, RefusesWhatCouldDesynchroniseUs) {
  for (const char* head : {
           "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n",
           "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\n",
           "HTTP/1.1 200 OK\r\nContent-Length: 3, 3\r\n\r\n",
           "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
           "HTTP/1.1 200 OK\r\nX: a\r\n b\r\n\r\n",
           "HTTP/1.1 200 OK\r\nX: a\nY: b\r\n\r\n",
           "HTTP/1.1 204 x\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n",
           "HTTP/2.0 200 OK\r\n\r\n",
           "HTTP/1.1 20 OK\r\n\r\n",
           "ICY 200 OK\r\n\r\n",
           "\r\nHTTP/1.1 200 OK\r\n\r\n",
       }) {
    ResponseParser parser(kMaxHead);
    ResponseStart start;
    EXPECT_FALSE(parser.parse(head, false, start)) << head;
  }
}

}  // namespace
}  // namespace cay::net
