// Environment variables: rank and size, texts for booleans, the path of the configuration file.
#include <algorithm>
#include <array>

#include "core/text/text.hpp"
#include "launch/settings/config_path.hpp"
#include "replay.hpp"
#include "runtime/identity/launcher.hpp"

namespace hortator::golden {
namespace {

using Table = std::map<std::string, std::string>;

bool is_environment(const json& file) {
  const auto kind = file.at("cases").front().value("kind", "");
  return kind == "rank_info" || kind == "str_to_bool" || kind == "config_path";
}

std::optional<std::string> find(const Table& table, const std::string& name) {
  const auto found = table.find(name);
  return found == table.end() ? std::nullopt : std::optional(found->second);
}

json rank_numbers_of(const runtime::LauncherFacts& facts) {
  return {facts.rank.value_or(0), facts.size.value_or(1), facts.local_rank.value_or(0), facts.local_size.value_or(1)};
}

// The numbers of one launcher, in the order of rank_numbers_of.
json numbers_by(const std::array<const char*, 4>& names, const core::Variables& variables) {
  constexpr std::array<int, 4> defaults = {0, 1, 0, 1};
  auto numbers = json::array();
  for (std::size_t i = 0; i < names.size(); ++i)
    numbers.push_back(core::number(variables, names[i]).value_or(defaults[i]));
  return numbers;
}

// Accelerate takes each number from the first launcher that sets it, and does not know Slurm and PALS. Hortator takes
// all numbers from one launcher, so that rank and size always belong together; launchers of MPI ranks come first.
Outcome judge_other_facts(const json& ours, const json& theirs, const core::Variables& variables) {
  constexpr std::array<std::array<const char*, 4>, 6> launchers = {
      {{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"},
       {"MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_LOCAL_RANK", "MV2_COMM_WORLD_LOCAL_SIZE"},
       {"PALS_RANKID", "PMI_SIZE", "PALS_LOCAL_RANKID", "PMI_LOCAL_SIZE"},
       {"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"},
       {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", "-"},
       {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"}}};
  constexpr std::size_t known_by_rank = 3;  // the first three launchers: only they set these variables
  const auto is_set = [&](const char* name) { return core::number(variables, name).has_value(); };
  int count = 0;
  const std::array<const char*, 4>* first = nullptr;
  for (const auto& names : launchers) {
    count += std::any_of(names.begin(), names.end(), is_set) ? 1 : 0;
    const bool needs_size = &names >= &launchers[known_by_rank];
    if (first == nullptr && is_set(names[0]) && (is_set(names[1]) || !needs_size)) first = &names;
  }
  const auto expected = first == nullptr ? json{0, 1, 0, 1} : numbers_by(*first, variables);
  if (ours != expected) return compare("rank, size, local rank and local size", ours, expected);
  if (first != nullptr && (*first)[0] == launchers[2][0]) return on_purpose("pals_is_read");
  if (first != nullptr && (*first)[0] == launchers[4][0]) return on_purpose("slurm_is_read");
  if (first == nullptr && count > 0) return on_purpose("a_rank_or_a_size_alone_is_no_fact");
  if (first != nullptr && !is_set((*first)[1])) return on_purpose("a_launcher_is_known_by_its_rank");
  return count > 1 ? on_purpose("one_launcher_says_all")
                   : compare("rank, size, local rank and local size", ours, theirs);
}

Outcome judge_rank_info(const json& one) {
  const auto table = one.at("env").get<Table>();
  const auto variables = [&](const char* name) { return find(table, name); };
  const auto ours = rank_numbers_of(runtime::read_launcher(variables));
  const json theirs = {one.at("rank"), one.at("world_size"), one.at("local_rank"), one.at("local_world_size")};
  return ours == theirs ? equal() : judge_other_facts(ours, theirs, variables);
}

Outcome judge_bool(const json& one) {
  const auto ours = text::parse_bool(one.at("value").get<std::string>());
  if (one.contains("error")) return ours ? differs("was parsed as a boolean") : equal();
  return ours ? compare("the meaning", *ours ? 1 : 0, one.at("out")) : differs("was not parsed as a boolean");
}

Outcome judge_config_path(const json& one) {
  const auto table = one.at("env").get<Table>();
  const auto path = launching::accelerate_config_path(
      {.home = one.at("home"), .hf_home = find(table, "HF_HOME"), .xdg_cache_home = find(table, "XDG_CACHE_HOME")});
  return compare("the path", path.string(), one.at("path"));
}

Outcome judge_environment(const json& one, const json&) {
  const auto kind = one_of(one, "kind", {"rank_info", "str_to_bool", "config_path"});
  if (kind == "rank_info") return judge_rank_info(one);
  return kind == "str_to_bool" ? judge_bool(one) : judge_config_path(one);
}

}  // namespace

Format environment() {
  return {.name = "environment",
          .recognises = is_environment,
          .world = [](const json&) { return 0; },
          .judge = judge_environment};
}

}  // namespace hortator::golden
