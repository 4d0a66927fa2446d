// The two documents of a job's folder.
#include "base/json.h"
#include "engine/job_folder.h"

namespace cay::engine {
namespace {

json::Array pairsArray(const Pairs& pairs) {
  json::Array out;
  for (const auto& [name, value] : pairs) out.push_back(json::Array{name, value});
  return out;
}

json::Array textArray(const std::vector<std::string>& texts) {
  json::Array out;
  for (const std::string& text : texts) out.emplace_back(text);
  return out;
}

// Reads a document that we wrote ourselves; whatever else it is shows in ok().
class Fields {
 public:
  explicit Fields(const json::Value& value) : object_(value.if_object()) {
    ok_ = object_ != nullptr;
  }

  [[nodiscard]] bool ok() const { return ok_; }
  [[nodiscard]] const json::Value* find(const char* name) const {
    return object_ == nullptr ? nullptr : object_->if_contains(name);
  }

  std::string text(const char* name) {
    const json::Value* value = need(name);
    return value != nullptr ? textOf(*value) : std::string();
  }
  template <typename Number>
  Number number(const char* name) {
    const json::Value* value = need(name);
    return value != nullptr ? numberOf<Number>(*value) : 0;
  }
  bool flag(const char* name) {
    const json::Value* value = need(name);
    const bool* out = value == nullptr ? nullptr : value->if_bool();
    if (out == nullptr) ok_ = false;
    return out != nullptr && *out;
  }
  std::vector<std::string> texts(const char* name) {
    std::vector<std::string> out;
    for (const json::Value& value : array(name)) out.push_back(textOf(value));
    return out;
  }
  template <typename Number>
  std::vector<Number> numbers(const char* name) {
    std::vector<Number> out;
    for (const json::Value& value : array(name)) out.push_back(numberOf<Number>(value));
    return out;
  }
  Pairs pairs(const char* name) {
    Pairs out;
    for (const json::Value& value : array(name)) {
      const json::Array* pair = value.if_array();
      if (pair == nullptr || pair->size() != 2) {
        ok_ = false;
        return {};
      }
      out.emplace_back(textOf((*pair)[0]), textOf((*pair)[1]));
    }
    return out;
  }
  const json::Array& array(const char* name) {
    static const json::Array kNone;
    const json::Value* value = need(name);
    const json::Array* out = value == nullptr ? nullptr : value->if_array();
    if (out == nullptr) ok_ = false;
    return out == nullptr ? kNone : *out;
  }
  void require(bool good) { ok_ = ok_ && good; }

 private:
  const json::Value* need(const char* name) {
    const json::Value* value = find(name);
    if (value == nullptr) ok_ = false;
    return value;
  }
  template <typename Number>
  Number numberOf(const json::Value& value) {
    boost::system::error_code error;
    const auto out = value.to_number<Number>(error);
    if (error) ok_ = false;
    return out;
  }
  std::string textOf(const json::Value& value) {
    const json::String* text = value.if_string();
    if (text == nullptr) ok_ = false;
    return text == nullptr ? std::string() : std::string(*text);
  }

  const json::Object* object_;
  bool ok_ = true;
};

template <typename Enum>
Enum enumOf(Fields& in, const char* name, Enum last) {
  const auto number = in.number<uint8_t>(name);
  in.require(number <= static_cast<uint8_t>(last));
  return static_cast<Enum>(number);
}

json::Object volumeObject(const VolumeRef& volume) {
  return {{"type", static_cast<uint8_t>(volume.type)},
          {"source", volume.source},
          {"at", volume.at},
          {"path", volume.path},
          {"revision", volume.revision},
          {"readOnly", volume.readOnly}};
}

VolumeRef readVolume(Fields& in) {
  return {.type = enumOf(in, "type", VolumeRef::Type::kSpace),
          .source = in.text("source"),
          .at = in.text("at"),
          .path = in.text("path"),
          .revision = in.text("revision"),
          .readOnly = in.flag("readOnly")};
}

Resources readResources(Fields& in) {
  return {.milliCpus = in.number<uint32_t>("milliCpus"),
          .memoryBytes = in.number<uint64_t>("memoryBytes"),
          .diskBytes = in.number<uint64_t>("diskBytes"),
          .pids = in.number<uint64_t>("pids"),
          .gpus = in.number<uint32_t>("gpus")};
}

SandboxServer readServer(Fields& in) {
  return {.token = in.text("token"),
          .compatHostToken = in.flag("compatHostToken"),
          .idleTimeoutMs = in.number<int64_t>("idleTimeoutMs"),
          .capacity = in.number<uint32_t>("capacity")};
}

NetworkId readNetwork(Fields& in) {
  return {.epoch = in.number<uint32_t>("epoch"), .number = in.number<uint32_t>("number")};
}

// What `read` makes of a document in the document.
template <typename Value>
Value readInner(Fields& in, const json::Value* value, Value (*read)(Fields&)) {
  static const json::Value kNone;
  Fields inner(value == nullptr ? kNone : *value);
  Value out = read(inner);
  in.require(inner.ok());
  return out;
}

Status readStatus(Fields& in) {
  Status out;
  const auto stage = stageOf(in.text("stage"));
  in.require(stage.has_value());
  out.stage = stage.value_or(Stage::kError);
  out.message = in.text("message");
  out.serving = in.flag("serving");
  out.startedAtMs = in.number<int64_t>("startedAtMs");
  out.finishedAtMs = in.number<int64_t>("finishedAtMs");
  if (in.find("exitCode") != nullptr) out.exitCode = in.number<int>("exitCode");
  out.attempt = in.number<uint32_t>("attempt");
  out.image = in.text("image");
  out.notes = in.texts("notes");
  return out;
}

}  // namespace

std::string specText(const JobSpec& spec) {
  json::Array volumes;
  for (const VolumeRef& volume : spec.volumes) volumes.emplace_back(volumeObject(volume));
  const Resources& resources = spec.resources;
  const json::Object out{{"id", spec.id},
                         {"ns", spec.ns},
                         {"kind", static_cast<uint8_t>(spec.kind)},
                         {"image", spec.image},
                         {"command", textArray(spec.command)},
                         {"env", pairsArray(spec.env)},
                         {"secrets", pairsArray(spec.secrets)},
                         {"labels", pairsArray(spec.labels)},
                         {"resources",
                          {{"milliCpus", resources.milliCpus},
                           {"memoryBytes", resources.memoryBytes},
                           {"diskBytes", resources.diskBytes},
                           {"pids", resources.pids},
                           {"gpus", resources.gpus}}},
                         {"flavor", spec.flavor},
                         {"timeoutMs", spec.timeoutMs},
                         {"deadlineMs", spec.deadlineMs},
                         {"attempts", spec.attempts},
                         {"group", spec.group},
                         {"groupName", spec.groupName},
                         {"aliases", textArray(spec.aliases)},
                         {"volumes", volumes},
                         {"server",
                          {{"token", spec.server.token},
                           {"compatHostToken", spec.server.compatHostToken},
                           {"idleTimeoutMs", spec.server.idleTimeoutMs},
                           {"capacity", spec.server.capacity}}}};
  return json::serialize(out);
}

Result<JobSpec> parseSpec(std::string_view text) {
  CAY_ASSIGN(const json::Value value, json::parse(text));
  Fields in(value);
  JobSpec spec;
  spec.id = in.text("id");
  spec.ns = in.text("ns");
  spec.kind = enumOf(in, "kind", Kind::kPool);
  spec.image = in.text("image");
  spec.command = in.texts("command");
  spec.env = in.pairs("env");
  spec.secrets = in.pairs("secrets");
  spec.labels = in.pairs("labels");
  spec.resources = readInner(in, in.find("resources"), readResources);
  spec.flavor = in.text("flavor");
  spec.timeoutMs = in.number<int64_t>("timeoutMs");
  spec.deadlineMs = in.number<int64_t>("deadlineMs");
  spec.attempts = in.number<uint32_t>("attempts");
  spec.group = in.text("group");
  spec.groupName = in.text("groupName");
  spec.aliases = in.texts("aliases");
  for (const json::Value& volume : in.array("volumes")) {
    spec.volumes.push_back(readInner(in, &volume, readVolume));
  }
  spec.server = readInner(in, in.find("server"), readServer);
  if (!in.ok()) return fail(Code::kInternal, "the record of a job is broken");
  return spec;
}

std::string stateText(const JobState& state) {
  const Status& status = state.status;
  json::Object out{{"number", state.number},
                   {"stage", stageName(status.stage)},
                   {"message", status.message},
                   {"serving", status.serving},
                   {"startedAtMs", status.startedAtMs},
                   {"finishedAtMs", status.finishedAtMs},
                   {"attempt", status.attempt},
                   {"image", status.image},
                   {"notes", textArray(status.notes)}};
  if (status.exitCode) out["exitCode"] = *status.exitCode;
  if (state.network) {
    out["network"] =
        json::Object{{"epoch", state.network->epoch}, {"number", state.network->number}};
  }
  if (state.idBlock) out["idBlock"] = *state.idBlock;
  if (!state.gpus.empty()) out["gpus"] = json::Array(state.gpus.begin(), state.gpus.end());
  return json::serialize(out);
}

Result<JobState> parseState(std::string_view text) {
  CAY_ASSIGN(const json::Value value, json::parse(text));
  Fields in(value);
  JobState state;
  state.number = in.number<int64_t>("number");
  state.status = readStatus(in);
  if (const json::Value* network = in.find("network")) {
    state.network = readInner(in, network, readNetwork);
  }
  if (in.find("idBlock") != nullptr) state.idBlock = in.number<uint32_t>("idBlock");
  if (in.find("gpus") != nullptr) state.gpus = in.numbers<uint32_t>("gpus");
  if (!in.ok()) return fail(Code::kInternal, "the state of a job is broken");
  return state;
}

}  // namespace cay::engine
