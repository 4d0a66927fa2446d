// Heads and chunk headers as text, for whoever writes HTTP: the server's answers, the client's
// requests.
#pragma once

#include <string>
#include <string_view>

#include "net/http.h"

namespace cay::net {

bool isFieldName(std::string_view name);
// No line ends and no other control characters, so that a value can never become a second field.
bool isFieldValue(std::string_view value);

void appendStatusLine(std::string& out, int status);
void appendField(std::string& out, const Field& field);
void appendFields(std::string& out, const Fields& fields);
// The fields that are allowed in a trailer part and well formed; the others are left out.
void appendTrailers(std::string& out, const Fields& trailers);
// "1f\r\n"
void appendChunkSize(std::string& out, uint64_t size);

}  // namespace cay::net
