#include "host/file_json.h"

#include "base/json.h"
#include "files/path_text.h"

namespace cay::host {
namespace {

void appendName(std::string& out, std::string_view bytes) {
  json::appendString(out, files::shown(bytes));
}

void appendOctal(std::string& out, mode_t mode) {
  for (int shift = 9; shift >= 0; shift -= 3)
    out.push_back(static_cast<char>('0' + (mode >> shift & 7)));
}

void appendEntry(std::string& out, std::string_view path, const files::Entry& entry) {
  out.append("{\"name\":");
  appendName(out, entry.name);
  out.append(",\"path\":");
  appendName(out, path);
  out.append(",\"type\":\"").append(entry.type);
  out.append("\",\"size\":").append(std::to_string(entry.size));
  out.append(",\"mtime_ms\":").append(std::to_string(entry.mtimeMs));
  out.append(",\"mode\":\"");
  appendOctal(out, entry.mode);
  out.append("\"}");
}

std::string_view changeName(files::Change change) {
  switch (change) {
    case files::Change::kCreated:
      return "created";
    case files::Change::kModified:
      return "modified";
    case files::Change::kDeleted:
      return "deleted";
    case files::Change::kMoved:
      return "moved";
    case files::Change::kOverflow:
      return "overflow";
  }
  return "";
}

}  // namespace

std::string statJson(const files::StatResult& stat) {
  std::string out;
  appendEntry(out, stat.path, stat.entry);
  return out;
}

std::string listingJson(const files::Listing& listing) {
  std::string out = "{\"entries\":[";
  out.reserve(listing.entries.size() * (listing.path.size() + 120) + 32);
  for (const files::Entry& entry : listing.entries) {
    if (&entry != &listing.entries.front()) out.push_back(',');
    appendEntry(out, files::joinPath(listing.path, entry.name), entry);
  }
  out.append("],\"next\":");
  if (listing.more && !listing.entries.empty()) {
    appendName(out, listing.entries.back().name);
  } else {
    out.append("null");
  }
  return out.append("}");
}

void appendWatchEvent(std::string& out, const files::WatchEvent& event) {
  out.append("{\"event\":\"").append(changeName(event.change)).append("\",\"path\":");
  appendName(out, event.path);
  if (!event.from.empty()) {
    out.append(",\"from\":");
    appendName(out, event.from);
  }
  out.append("}\n");
}

}  // namespace cay::host
