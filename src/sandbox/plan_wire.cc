#include "sandbox/plan_wire.h"

namespace cay::sandbox {

void putPlan(Writer& out, const isolation::Plan& plan) {
  out.put(std::string_view(plan.id)).put(plan.mode).put(plan.network);
  out.put(plan.slot).put(plan.firstUid);
  out.put(plan.limits.memoryBytes).put(plan.limits.pids);
  out.put(plan.limits.milliCpus).put(plan.limits.diskBytes);
  out.put(static_cast<uint32_t>(plan.root.size()));
  for (const isolation::Overlay& overlay : plan.root) {
    out.put(std::string_view(overlay.at)).put(static_cast<uint32_t>(overlay.lowers.size()));
    for (const std::string& lower : overlay.lowers) out.put(std::string_view(lower));
  }
  out.put(static_cast<uint32_t>(plan.binds.size()));
  for (const isolation::Bind& bind : plan.binds) {
    out.put(std::string_view(bind.source)).put(std::string_view(bind.at));
    out.put(bind.readOnly).put(bind.isFile);
  }
  out.put(static_cast<uint32_t>(plan.devices.size()));
  for (const std::string& device : plan.devices) out.put(std::string_view(device));
  out.put(plan.lifetimeMs).put(plan.stays);
}

isolation::Plan getPlan(Reader& in) {
  isolation::Plan plan;
  plan.id = in.text();
  plan.mode = in.get<isolation::Mode>();
  plan.network = in.get<isolation::Network>();
  plan.slot = in.get<uint32_t>();
  plan.firstUid = in.get<uint32_t>();
  plan.limits.memoryBytes = in.get<uint64_t>();
  plan.limits.pids = in.get<uint64_t>();
  plan.limits.milliCpus = in.get<uint32_t>();
  plan.limits.diskBytes = in.get<uint64_t>();
  for (auto overlays = in.get<uint32_t>(); overlays > 0 && in.ok(); --overlays) {
    isolation::Overlay& overlay = plan.root.emplace_back();
    overlay.at = in.text();
    for (auto lowers = in.get<uint32_t>(); lowers > 0 && in.ok(); --lowers) {
      overlay.lowers.emplace_back(in.text());
    }
  }
  for (auto binds = in.get<uint32_t>(); binds > 0 && in.ok(); --binds) {
    isolation::Bind& bind = plan.binds.emplace_back();
    bind.source = in.text();
    bind.at = in.text();
    bind.readOnly = in.get<bool>();
    bind.isFile = in.get<bool>();
  }
  for (auto devices = in.get<uint32_t>(); devices > 0 && in.ok(); --devices) {
    plan.devices.emplace_back(in.text());
  }
  plan.lifetimeMs = in.get<int64_t>();
  plan.stays = in.get<bool>();
  return plan;
}

}  // namespace cay::sandbox
