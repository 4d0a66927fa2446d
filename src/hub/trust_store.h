// The certificates that this machine's programs trust, for handing them on with one more.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace cay::hub {

// Where they may be, best first: what SSL_CERT_FILE says, then the places of the distributions.
std::vector<std::string> trustFiles();

// Each certificate of the text as a PEM block of its own; what cannot be read is left out.
std::vector<std::string> certificatesIn(std::string_view text);

// What a folder for SSL_CERT_DIR holds: names, made from the subjects, and PEM blocks.
Result<std::map<std::string, std::string>> hashedNames(
    const std::vector<std::string>& certificates);

}  // namespace cay::hub
