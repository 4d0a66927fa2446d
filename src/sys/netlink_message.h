// One rtnetlink message while it is written, and the attributes of one that has come.
#pragma once

#include <linux/netlink.h>
#include <linux/rtnetlink.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>

namespace cay::sys {

class NetlinkMessage {
 public:
  template <typename Body>
    requires std::is_trivially_copyable_v<Body>
  NetlinkMessage(uint16_t type, uint16_t flags, const Body& body) {
    nlmsghdr header{};
    header.nlmsg_type = type;
    header.nlmsg_flags = static_cast<uint16_t>(NLM_F_REQUEST | flags);
    append(&header, sizeof header);
    append(&body, sizeof body);
  }

  NetlinkMessage& add(uint16_t type, std::string_view bytes) {
    const rtattr attribute{.rta_len = static_cast<uint16_t>(RTA_LENGTH(bytes.size())),
                           .rta_type = type};
    append(&attribute, sizeof attribute);
    append(bytes.data(), bytes.size());
    return *this;
  }
  template <typename Integer>
    requires std::is_integral_v<Integer>
  NetlinkMessage& add(uint16_t type, Integer value) {
    return add(type, {reinterpret_cast<const char*>(&value), sizeof value});
  }
  NetlinkMessage& addName(uint16_t type, const std::string& name) {
    return add(type, {name.c_str(), name.size() + 1});
  }

  // What is added between these two lies inside an attribute; begin() gives the ticket for end().
  size_t begin(uint16_t type) {
    const size_t at = bytes_.size();
    add(type, std::string_view());
    return at;
  }
  void end(size_t at) {
    const auto length = static_cast<uint16_t>(bytes_.size() - at);
    std::memcpy(bytes_.data() + at + offsetof(rtattr, rta_len), &length, sizeof length);
  }
  template <typename Body>
    requires std::is_trivially_copyable_v<Body>
  NetlinkMessage& addBody(const Body& body) {
    append(&body, sizeof body);
    return *this;
  }

  // Ready to be sent.
  const std::string& finish(uint32_t sequence) {
    nlmsghdr header;
    std::memcpy(&header, bytes_.data(), sizeof header);
    header.nlmsg_len = static_cast<uint32_t>(bytes_.size());
    header.nlmsg_seq = sequence;
    std::memcpy(bytes_.data(), &header, sizeof header);
    return bytes_;
  }

 private:
  // Everything in a message starts at a multiple of four.
  void append(const void* data, size_t size) {
    bytes_.append(static_cast<const char*>(data), size);
    bytes_.resize(NLMSG_ALIGN(bytes_.size()));
  }

  std::string bytes_;
};

// The value of an attribute behind a body of `bodySize` bytes; empty if it is not there.
inline std::string_view netlinkAttribute(std::string_view payload, size_t bodySize, uint16_t type) {
  size_t at = NLMSG_ALIGN(bodySize);
  while (at + sizeof(rtattr) <= payload.size()) {
    rtattr attribute;
    std::memcpy(&attribute, payload.data() + at, sizeof attribute);
    if (attribute.rta_len < sizeof attribute || at + attribute.rta_len > payload.size()) return {};
    if (attribute.rta_type == type) {
      return payload.substr(at + sizeof attribute, attribute.rta_len - sizeof attribute);
    }
    at += RTA_ALIGN(attribute.rta_len);
  }
  return {};
}

}  // namespace cay::sys
