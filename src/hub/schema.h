// The tables of the hub's database, and how those of older programs become ours.
//
// A step of the list is never changed once it has been released: changes are steps after it.
#pragma once

#include <span>
#include <string>

#include "base/error.h"
#include "hub/sqlite.h"

namespace cay::hub {

// Opens the file, makes or upgrades its tables and sets what a connection must have. kConflict, and
// nothing is changed, if it is of a newer program or not of ours at all.
Result<Database> openHubDatabase(const std::string& file);

// The steps from an empty file; the version of a file is how many of them it has had.
std::span<const char* const> schemaSteps();

// Takes those that the file lacks, all or none. Safe beside another process that does the same.
Result<> upgradeSchema(Database& database, std::span<const char* const> steps);

}  // namespace cay::hub
