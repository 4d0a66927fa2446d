#include "host/startup.h"

#include <algorithm>
#include <initializer_list>
#include <limits>
#include <set>

#include "base/text.h"
#include "host/body_fields.h"
#include "sandbox/pool_record.h"

namespace cay::host {
namespace {

using isolation::Mode;

constexpr int64_t kMostLogBytes = int64_t{1} << 40;
constexpr int64_t kMostMs = int64_t{1000} * 86'400 * 365 * 100;
constexpr int64_t kMostId = std::numeric_limits<uint32_t>::max();
constexpr size_t kMostPathBytes = 4095;

// Takes the fields of an object one by one, all of which must be there and of which there must be
// no others: what is not understood would not be done. Remembers the first that is wrong.
class Taker {
 public:
  explicit Taker(const json::Object& object, std::string prefix = {})
      : object_(object), prefix_(std::move(prefix)) {}

  std::string text(const char* name) {
    const json::Value* value = take(name);
    auto text = value == nullptr ? std::string() : note(plainText(*value, prefix_ + name));
    return text;
  }
  // An absolute path.
  std::string path(const char* name) {
    std::string path = text(name);
    if (!isPath(path)) refuse(name, "must be an absolute path");
    return path;
  }
  std::string pathOrNone(const char* name) {
    std::string path = text(name);
    if (!path.empty() && !isPath(path)) refuse(name, "must be an absolute path, or empty");
    return path;
  }
  int64_t number(const char* name, int64_t low, int64_t high) {
    const json::Value* value = take(name);
    if (value == nullptr) return low;
    if (value->is_int64() && value->get_int64() >= low && value->get_int64() <= high) {
      return value->get_int64();
    }
    refuse(name,
           "must be a whole number from " + std::to_string(low) + " to " + std::to_string(high));
    return low;
  }
  uint32_t id(const char* name) { return static_cast<uint32_t>(number(name, 0, kMostId)); }
  bool flag(const char* name) {
    const json::Value* value = take(name);
    if (value != nullptr && value->is_bool()) return value->get_bool();
    refuse(name, "must be true or false");
    return false;
  }
  template <typename Enum>
  Enum oneOf(const char* name, std::string_view (*nameOf)(Enum), std::initializer_list<Enum> all) {
    const std::string chosen = text(name);
    std::string names;
    for (const Enum value : all) {
      if (nameOf(value) == chosen) return value;
      names.append(names.empty() ? "" : " or ").append(nameOf(value));
    }
    refuse(name, "must be " + names);
    return *all.begin();
  }
  std::vector<std::string> texts(const char* name) {
    std::vector<std::string> out;
    for (const json::Value& value : array(name)) {
      out.push_back(note(plainText(value, prefix_ + name)));
    }
    return out;
  }
  std::vector<std::string> paths(const char* name) {
    std::vector<std::string> out = texts(name);
    if (!std::ranges::all_of(out, isPath)) refuse(name, "must be a list of absolute paths");
    return out;
  }
  std::vector<std::string> environment(const char* name) {
    std::vector<std::string> out = texts(name);
    for (const std::string& entry : out) {
      const size_t equals = entry.find('=');
      if (equals == 0 || equals == std::string::npos) refuse(name, "must be a list of NAME=value");
    }
    return out;
  }
  // One object in a list of them.
  template <typename T>
  std::vector<T> each(const char* name, T (*read)(Taker&)) {
    std::vector<T> out;
    for (const json::Value& value : array(name)) {
      out.push_back(take(value, prefix_ + name + "[" + std::to_string(out.size()) + "]", read));
    }
    return out;
  }
  // null: there is none.
  template <typename T>
  std::optional<T> perhaps(const char* name, T (*read)(Taker&)) {
    const json::Value* value = take(name);
    if (value == nullptr || value->is_null()) return std::nullopt;
    return take(*value, prefix_ + name, read);
  }

  void refuse(std::string_view name, std::string_view what) {
    if (!error_) error_ = wrong(prefix_ + std::string(name), what).error();
  }
  void refuse(Error error) {
    if (!error_) error_ = std::move(error);
  }
  [[nodiscard]] Result<> outcome() const {
    if (error_) return std::unexpected(*error_);
    for (const auto& [name, value] : object_) {
      if (!taken_.contains(std::string_view(name))) {
        return wrong(prefix_ + quoted(name), "is not known here");
      }
    }
    return {};
  }
  static bool isPath(std::string_view path) {
    return path.starts_with('/') && path.size() <= kMostPathBytes;
  }

 private:
  const json::Value* take(const char* name) {
    const json::Value* value = object_.if_contains(name);
    if (value == nullptr) refuse(name, "is missing");
    taken_.insert(name);
    return value;
  }
  template <typename T>
  T take(const json::Value& value, const std::string& name, T (*read)(Taker&)) {
    if (!value.is_object()) {
      refuse(wrong(name, "must be an object").error());
      return T{};
    }
    Taker inner(value.get_object(), name + ".");
    T taken = read(inner);
    if (auto outcome = inner.outcome(); !outcome) refuse(std::move(outcome).error());
    return taken;
  }
  const json::Array& array(const char* name) {
    static const json::Array kNone;
    const json::Value* value = take(name);
    if (value != nullptr && value->is_array()) return value->get_array();
    refuse(name, "must be a list");
    return kNone;
  }
  std::string note(Result<std::string> text) {
    if (text) return *std::move(text);
    refuse(std::move(text).error());
    return {};
  }

  const json::Object& object_;
  const std::string prefix_;
  std::set<std::string_view> taken_;
  std::optional<Error> error_;
};

json::Array arrayOf(const std::vector<std::string>& texts) {
  json::Array out;
  for (const std::string& text : texts) out.emplace_back(text);
  return out;
}

template <typename T>
json::Array arrayOf(const std::vector<T>& values, json::Object (*write)(const T&)) {
  json::Array out;
  for (const T& value : values) out.emplace_back(write(value));
  return out;
}

template <typename T>
json::Value perhaps(const std::optional<T>& value, json::Object (*write)(const T&)) {
  return value ? json::Value(write(*value)) : json::Value(nullptr);
}

json::Object writeAttached(const AttachedSandbox& attached) {
  return {{"folder", attached.folder},
          {"walls", sandbox::modeName(attached.mode)},
          {"first_uid", int64_t{attached.firstUid}},
          {"cwd", attached.cwd},
          {"env", arrayOf(attached.env)},
          {"log_head_bytes", attached.logs.headBytes},
          {"log_ring_bytes", attached.logs.ringBytes}};
}

uint64_t takeBytes(Taker& in, const char* name) {
  return static_cast<uint64_t>(in.number(name, 1, kMostLogBytes));
}

AttachedSandbox takeAttached(Taker& in) {
  return {.folder = in.path("folder"),
          .mode = in.oneOf("walls", sandbox::modeName, {Mode::kFull, Mode::kUnprivileged}),
          .firstUid = in.id("first_uid"),
          .cwd = in.path("cwd"),
          .env = in.environment("env"),
          .logs = {.headBytes = takeBytes(in, "log_head_bytes"),
                   .ringBytes = takeBytes(in, "log_ring_bytes")}};
}

json::Object writeOverlay(const isolation::Overlay& overlay) {
  return {{"at", overlay.at}, {"lowers", arrayOf(overlay.lowers)}};
}

isolation::Overlay takeOverlay(Taker& in) {
  isolation::Overlay overlay{.at = in.path("at"), .lowers = in.paths("lowers")};
  if (overlay.lowers.empty()) in.refuse("lowers", "must be a list of absolute paths");
  return overlay;
}

json::Object writeImage(const layers::Image& image) {
  return {{"name", image.name},
          {"version", image.version},
          {"overlays", arrayOf(image.overlays, writeOverlay)},
          {"env", arrayOf(image.config.env)}};
}

layers::Image takeImage(Taker& in) {
  layers::Image image{.name = in.text("name"),
                      .version = in.text("version"),
                      .overlays = in.each("overlays", takeOverlay)};
  image.config.env = in.environment("env");
  if (image.version.empty()) in.refuse("version", "must not be empty");
  return image;
}

json::Object writeBind(const isolation::Bind& bind) {
  return {{"source", bind.source},
          {"at", bind.at},
          {"read_only", bind.readOnly},
          {"is_file", bind.isFile}};
}

isolation::Bind takeBind(Taker& in) {
  return {.source = in.path("source"),
          .at = in.path("at"),
          .readOnly = in.flag("read_only"),
          .isFile = in.flag("is_file")};
}

json::Object writeIds(const sandbox::UserIds& ids) {
  return {{"base", int64_t{ids.base}},
          {"step", int64_t{ids.step}},
          {"count", int64_t{ids.count}},
          {"slots", int64_t{ids.slots}}};
}

sandbox::UserIds takeIds(Taker& in) {
  sandbox::UserIds ids{.base = in.id("base"),
                       .step = in.id("step"),
                       .count = static_cast<uint32_t>(in.number("count", 1, kMostId)),
                       .slots = static_cast<uint32_t>(in.number("slots", 1, kMostId))};
  const uint64_t most = (uint64_t{kMostId} - ids.base) / std::max<uint64_t>(ids.step, 1);
  if (ids.step > 0 && (ids.base == 0 || ids.count > ids.step || ids.slots > most)) {
    in.refuse("base", "and the rest must be ids of this machine that do not overlap, without 0");
  }
  return ids;
}

json::Object writePool(const PoolSettings& pool) {
  return {{"capacity", int64_t{pool.capacity}},      {"ready", int64_t{pool.mostReady}},
          {"walls", sandbox::modeName(pool.mode)},   {"image", perhaps(pool.image, writeImage)},
          {"binds", arrayOf(pool.binds, writeBind)}, {"devices", arrayOf(pool.devices)},
          {"ids", perhaps(pool.ids, writeIds)},      {"walls_note", pool.wallsNote}};
}

PoolSettings takePool(Taker& in) {
  return {.capacity = static_cast<uint32_t>(in.number("capacity", 1, kMostCapacity)),
          .mostReady = static_cast<uint32_t>(in.number("ready", 0, kMostReady)),
          .mode = in.oneOf("walls", sandbox::modeName,
                           {Mode::kFull, Mode::kUnprivileged, Mode::kRestricted}),
          .image = in.perhaps("image", takeImage),
          .binds = in.each("binds", takeBind),
          .devices = in.paths("devices"),
          .ids = in.perhaps("ids", takeIds),
          .wallsNote = in.pathOrNone("walls_note")};
}

Result<json::Object> objectIn(std::string_view text) {
  CAY_ASSIGN(json::Value parsed, json::parse(text));
  if (!parsed.is_object()) return fail(Code::kInvalid, "it must be a JSON object");
  return std::move(parsed.get_object());
}

}  // namespace

bool isHeaderSafe(std::string_view token) {
  return std::ranges::all_of(token, [](char c) { return c > 0x20 && c < 0x7F; });
}

std::string startupText(const Startup& startup) {
  const json::Object out{{"token", startup.token},
                         {"compat_host_token", startup.compatHostToken},
                         {"idle_timeout_ms", startup.idleTimeoutMs},
                         {"lifetime_ms", startup.lifetimeMs},
                         {"end_note", startup.endNote},
                         {"attached", perhaps(startup.attached, writeAttached)},
                         {"pool", perhaps(startup.pool, writePool)},
                         {"state_folder", startup.stateFolder}};
  return json::serialize(out);
}

Result<Startup> parseStartup(std::string_view text) {
  if (text.size() > kMostStartupBytes) return fail(Code::kTooLarge, "it has more than 16 MiB");
  CAY_ASSIGN(const json::Object object, objectIn(text));
  Taker in(object);
  Startup startup{.token = in.text("token"),
                  .compatHostToken = in.flag("compat_host_token"),
                  .idleTimeoutMs = in.number("idle_timeout_ms", 0, kMostMs),
                  .lifetimeMs = in.number("lifetime_ms", 0, kMostMs),
                  .endNote = in.pathOrNone("end_note"),
                  .attached = in.perhaps("attached", takeAttached),
                  .pool = in.perhaps("pool", takePool),
                  .stateFolder = in.text("state_folder")};
  if (startup.token.empty() || !isHeaderSafe(startup.token)) {
    in.refuse("token", "must be visible ASCII characters");
  }
  if (startup.attached.has_value() == startup.pool.has_value()) {
    in.refuse("attached", "or 'pool' must be there, and not both");
  }
  if (startup.pool && !Taker::isPath(startup.stateFolder)) {
    in.refuse("state_folder", "must be an absolute path");
  }
  CAY_TRY(in.outcome());
  return startup;
}

std::string_view endName(End end) {
  switch (end) {
    case End::kIdle:
      return "idle";
    case End::kLifetime:
      return "lifetime";
    case End::kSandboxEnded:
      return "sandbox ended";
  }
  return "unknown";
}

std::string endNoteText(const EndNote& note) {
  return json::serialize(json::Object{{"why", endName(note.why)}, {"message", note.message}});
}

Result<EndNote> parseEndNote(std::string_view text) {
  CAY_ASSIGN(const json::Object object, objectIn(text));
  Taker in(object);
  EndNote note{.why = in.oneOf("why", endName, {End::kIdle, End::kLifetime, End::kSandboxEnded}),
               .message = in.text("message")};
  CAY_TRY(in.outcome());
  return note;
}

}  // namespace cay::host
