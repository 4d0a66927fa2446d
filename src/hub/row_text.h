// Lists and pairs as the JSON texts that rows hold.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "engine/job.h"

namespace cay::hub {

// kInternal: somebody else has written into our database.
std::unexpected<Error> brokenRow(std::string_view column);

std::string textsText(const std::vector<std::string>& texts);
Result<std::vector<std::string>> parseTexts(std::string_view text, std::string_view column);

std::string pairsText(const engine::Pairs& pairs);
Result<engine::Pairs> parsePairs(std::string_view text, std::string_view column);

}  // namespace cay::hub
