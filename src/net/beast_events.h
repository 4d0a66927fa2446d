// Beast's parser with every event ignored: what is derived from it keeps the events it needs.
// The only door to Beast; nothing but head_parser.cc and chunked_decoder.cc includes it.
#pragma once

#include <boost/beast/http/basic_parser.hpp>
#include <cstdint>
#include <limits>
#include <string_view>

namespace cay::net {

template <bool isRequest>
class BeastEvents : public boost::beast::http::basic_parser<isRequest> {
 protected:
  using ErrorCode = boost::beast::error_code;
  using Text = boost::beast::string_view;
  using Length = boost::optional<std::uint64_t>;

  // Sizes are limited by the callers, who see the bytes first.
  BeastEvents() {
    this->header_limit(std::numeric_limits<std::uint32_t>::max());
    this->body_limit(boost::none);
  }

  static std::string_view view(Text text) { return {text.data(), text.size()}; }

  void on_request_impl(boost::beast::http::verb, Text, Text, int, ErrorCode&) override {}
  void on_response_impl(int, Text, int, ErrorCode&) override {}
  void on_field_impl(boost::beast::http::field, Text, Text, ErrorCode&) override {}
  void on_header_impl(ErrorCode&) override {}
  void on_body_init_impl(const Length&, ErrorCode&) override {}
  std::size_t on_body_impl(Text body, ErrorCode&) override { return body.size(); }
  void on_chunk_header_impl(std::uint64_t, Text, ErrorCode&) override {}
  std::size_t on_chunk_body_impl(std::uint64_t, Text body, ErrorCode&) override {
    return body.size();
  }
  void on_finish_impl(ErrorCode&) override {}
};

}  // namespace cay::net
