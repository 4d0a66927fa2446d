// What the fields say that carry credentials.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace cay::hub {

// Of "Bearer <secret>", and the password of "Basic <user:password in base64>". nullopt for anything
// else.
std::optional<std::string> secretIn(std::string_view value);

// True if there is a token of a hub in it, good or not, under whatever scheme.
bool holdsOurToken(std::string_view value);

}  // namespace cay::hub
