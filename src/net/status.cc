#include "net/status.h"

#include "base/json.h"
#include "base/text.h"

namespace cay::net {

int httpStatus(Code code) {
  switch (code) {
    case Code::kInvalid:
      return 400;
    case Code::kDenied:
      return 403;
    case Code::kNotFound:
      return 404;
    case Code::kMethod:
      return 405;
    case Code::kTimeout:
      return 408;
    case Code::kConflict:
      return 409;
    case Code::kGone:
      return 410;
    case Code::kTooLarge:
      return 413;
    case Code::kUnprocessable:
      return 422;
    case Code::kUnreachable:
      return 502;
    case Code::kExhausted:
      return 503;
    case Code::kClosed:
    case Code::kInternal:
      return 500;
  }
  return 500;
}

std::string_view reasonPhrase(int status) {
  switch (status) {
    case 100:
      return "Continue";
    case 101:
      return "Switching Protocols";
    case 200:
      return "OK";
    case 201:
      return "Created";
    case 202:
      return "Accepted";
    case 204:
      return "No Content";
    case 206:
      return "Partial Content";
    case 301:
      return "Moved Permanently";
    case 302:
      return "Found";
    case 303:
      return "See Other";
    case 304:
      return "Not Modified";
    case 307:
      return "Temporary Redirect";
    case 308:
      return "Permanent Redirect";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 407:
      return "Proxy Authentication Required";
    case 408:
      return "Request Timeout";
    case 409:
      return "Conflict";
    case 410:
      return "Gone";
    case 411:
      return "Length Required";
    case 412:
      return "Precondition Failed";
    case 413:
      return "Content Too Large";
    case 415:
      return "Unsupported Media Type";
    case 416:
      return "Range Not Satisfiable";
    case 417:
      return "Expectation Failed";
    case 421:
      return "Misdirected Request";
    case 422:
      return "Unprocessable Content";
    case 426:
      return "Upgrade Required";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 500:
      return "Internal Server Error";
    case 501:
      return "Not Implemented";
    case 502:
      return "Bad Gateway";
    case 503:
      return "Service Unavailable";
    case 504:
      return "Gateway Timeout";
    case 505:
      return "HTTP Version Not Supported";
    case 507:
      return "Insufficient Storage";
    default:
      return "Unknown";
  }
}

std::string errorBody(std::string_view message) {
  std::string body = "{\"error\":";
  json::appendString(body, toValidUtf8(message));
  body.push_back('}');
  return body;
}

}  // namespace cay::net
