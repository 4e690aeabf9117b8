#include "runtime/watchdog/slot.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace hortator::runtime {
namespace {

using Json = nlohmann::json;

Json json_of(const RankRecord& slot) {
  Json json = {{"rank", slot.rank},
               {"local_rank", slot.local_rank},
               {"host", slot.host},
               {"pid", slot.pid},
               {"start", slot.start},
               {"life", static_cast<int>(slot.life)},
               {"phase", static_cast<int>(slot.phase)},
               {"one_thread", slot.has_one_thread},
               {"outside", slot.outside_seconds},
               {"standings", Json::array()},
               {"stack", slot.stack}};
  if (slot.wait) {
    const auto& wait = *slot.wait;
    json["wait"] = {wait.name, wait.bytes, wait.communicator, wait.sequence, wait.size, wait.seconds};
  }
  if (slot.device) {
    const auto& device = *slot.device;
    json["device"] = {device.name, device.communicator, device.sequence, device.is_its_turn};
  }
  if (!slot.note.empty()) json["note"] = slot.note;
  for (const auto& standing : slot.standings) json["standings"].push_back({standing.communicator, standing.entered});
  return json;
}

RankRecord slot_of(const Json& json) {
  RankRecord slot{.rank = json.at("rank"),
                  .local_rank = json.at("local_rank"),
                  .host = json.at("host"),
                  .pid = json.at("pid"),
                  .start = json.at("start"),
                  .life = static_cast<RankLife>(json.at("life").get<int>()),
                  .phase = static_cast<activity::Phase>(json.at("phase").get<int>()),
                  .has_one_thread = json.at("one_thread"),
                  .outside_seconds = json.at("outside"),
                  .stack = json.at("stack")};
  if (json.contains("wait")) {
    const auto& wait = json.at("wait");
    slot.wait = {.name = wait.at(0),
                 .bytes = wait.at(1),
                 .communicator = wait.at(2),
                 .sequence = wait.at(3),
                 .size = wait.at(4),
                 .seconds = wait.at(5)};
  }
  if (json.contains("device")) {
    const auto& device = json.at("device");
    slot.device = {
        .name = device.at(0), .communicator = device.at(1), .sequence = device.at(2), .is_its_turn = device.at(3)};
  }
  slot.note = json.value("note", "");
  for (const auto& standing : json.at("standings")) slot.standings.push_back({standing.at(0), standing.at(1)});
  return slot;
}

// Symbols of other libraries may hold any bytes.
std::string dump(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

}  // namespace

std::string to_json(const RankRecord& slot) { return dump(json_of(slot)); }

std::string to_json_within(RankRecord slot, std::size_t bytes) {
  auto json = to_json(slot);
  if (json.size() > bytes) slot.stack.clear();
  while ((json = to_json(slot)).size() > bytes && !slot.standings.empty()) {
    const auto middle = slot.standings.begin() + static_cast<std::ptrdiff_t>((slot.standings.size() + 1) / 2);
    const auto awaited =
        std::find_if(slot.standings.begin(), middle, [&](const RankRecord::CommunicatorProgress& standing) {
          return slot.wait && standing.communicator == slot.wait->communicator;
        });
    if (awaited != middle) std::iter_swap(awaited, slot.standings.end() - 1);
    slot.standings.erase(slot.standings.begin(), middle);
  }
  return json;
}

std::string to_json(const std::vector<RankRecord>& slots) {
  auto all = Json::array();
  for (const auto& slot : slots) all.push_back(json_of(slot));
  return dump(all);
}

std::optional<RankRecord> slot_from_json(std::string_view text) {
  try {
    return slot_of(Json::parse(text));
  } catch (const Json::exception&) {
    return {};
  }
}

std::vector<RankRecord> slots_from_json(std::string_view text) {
  std::vector<RankRecord> slots;
  try {
    for (const auto& json : Json::parse(text)) slots.push_back(slot_of(json));
  } catch (const Json::exception&) {
    return {};
  }
  return slots;
}

}  // namespace hortator::runtime
