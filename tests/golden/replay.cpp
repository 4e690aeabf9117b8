#include "replay.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <hortator/error.hpp>
#include <iterator>
#include <numeric>
#include <optional>

#include "core/text/text.hpp"
#include "mpi/collectives.hpp"

namespace hortator::golden {
namespace {

std::string shortened(const json& value) {
  constexpr std::size_t max_size = 160;
  auto line = value.dump();
  if (line.size() > max_size) line = line.substr(0, max_size) + "...";
  return line;
}

Outcome judge(const Format& format, const json& one, const json& file) {
  try {
    return format.judge(one, file);
  } catch (const std::exception& error) {
    return differs(text::concat("threw: ", error.what()));
  }
}

// Returns the difference found by the lowest rank, or else the rule found by any rank.
Outcome agree(const mpi::Communicator& comm, const Outcome& mine) {
  const auto differences = mpi::all_gather(comm, std::string_view(mine.difference));
  const auto rules = mpi::all_gather(comm, std::string_view(mine.rule));
  for (int rank = 0; rank < comm.size(); ++rank) {
    const auto& difference = differences[static_cast<std::size_t>(rank)];
    if (!difference.empty()) return differs(text::concat("rank ", rank, ": ", difference));
  }
  const auto ruled = std::find_if(rules.begin(), rules.end(), [](const auto& rule) { return !rule.empty(); });
  return ruled == rules.end() ? equal() : on_purpose(*ruled);
}

// A field of another format may have the same name and another type.
bool recognises(const Format& format, const json& file) {
  try {
    return format.recognises(file);
  } catch (const json::exception&) {
    return false;
  }
}

void require_cases(const json& file) {
  const bool has_cases = file.is_object() && file.contains("cases") && file["cases"].is_array() &&
                         !file["cases"].empty() && std::ranges::all_of(file["cases"], &json::is_object);
  if (has_cases) return;
  throw UsageError({.what = "The file has no list of cases",
                    .why = "a golden file is an object with the field \"cases\", a list of objects"});
}

void count(ReplaySummary& summary, const json& one, const Outcome& outcome) {
  if (!outcome.difference.empty()) {
    summary.failures.push_back(text::concat(name_of_case(one), ": ", outcome.difference));
    return;
  }
  ++summary.passed;
  if (!outcome.rule.empty()) ++summary.rules[outcome.rule];
}

}  // namespace

Outcome compare(std::string_view name, const json& ours, const json& theirs) {
  if (ours == theirs) return equal();
  return differs(text::concat(name, " is ", shortened(ours), ", Accelerate has ", shortened(theirs)));
}

const std::vector<Format>& formats() {
  static const std::vector<Format> all = {accumulate(),
                                          batch_sampler_shard(),
                                          checkpoint_naming(),
                                          collectives(),
                                          convert_size(),
                                          environment(),
                                          estimate_memory(),
                                          find_batch_size(),
                                          gather_for_metrics(),
                                          grad_scaler(),
                                          infer_auto_device_map(),
                                          iterable_dataset_shard(),
                                          safetensors(),
                                          seedable_sampler(),
                                          shard_checkpoint(),
                                          skip_first_batches(),
                                          split_between_processes(),
                                          training_trace()};
  return all;
}

const Format& format_of(const json& file) {
  require_cases(file);
  const Format* found = nullptr;
  std::vector<std::string> known;
  for (const auto& format : formats()) {
    known.push_back(format.name);
    if (!recognises(format, file)) continue;
    if (found != nullptr)
      throw Error({.what = text::concat("The file is of two formats: ", found->name, " and ", format.name)});
    found = &format;
  }
  if (found != nullptr) return *found;
  throw UsageError({.what = "The file's cases are of an unknown format",
                    .why = text::concat("known: ", text::join(known)),
                    .hint = text::concat("check its first case: ", shortened(file["cases"][0]))});
}

int ReplaySummary::on_purpose() const {
  return std::accumulate(rules.begin(), rules.end(), 0, [](int sum, const auto& rule) { return sum + rule.second; });
}

ReplaySummary& ReplaySummary::operator+=(const ReplaySummary& other) {
  passed += other.passed;
  for (const auto& [rule, cases] : other.rules) rules[rule] += cases;
  failures.insert(failures.end(), other.failures.begin(), other.failures.end());
  return *this;
}

void to_json(json& out, const ReplaySummary& summary) {
  out = {{"passed", summary.passed}, {"rules", summary.rules}, {"failures", summary.failures}};
}

void from_json(const json& in, ReplaySummary& summary) {
  summary.passed = in.at("passed");
  summary.rules = in.at("rules").get<std::map<std::string, int>>();
  summary.failures = in.at("failures").get<std::vector<std::string>>();
}

json read_file(const std::string& path) {
  std::ifstream file(path);
  if (!file.good()) throw UsageError({.what = text::concat("Cannot read the file ", text::quote(path))});
  try {
    auto content = json::parse(file);
    if (content.is_object()) content["folder"] = std::filesystem::absolute(path).parent_path().string();
    return content;
  } catch (const json::exception& error) {
    throw UsageError({.what = text::quote(path) + " is not valid JSON", .why = error.what()});
  }
}

std::string one_of(const json& one, const char* field, std::initializer_list<const char*> known) {
  const auto value = one.at(field).get<std::string>();
  if (std::ranges::find(known, value) != known.end()) return value;
  throw Error({.what = text::concat("The case's ", field, ": expected one of ", text::join(known), ", got ",
                                    text::quote(value))});
}

std::string name_of_case(const json& one) {
  return text::concat("case ", one.contains("id") ? one["id"].dump() : shortened(one));
}

std::optional<int> ranks_for(const Format& format, const json& one) {
  try {
    const int ranks = format.world(one);
    return ranks < 0 ? std::nullopt : std::optional(ranks);
  } catch (const json::exception&) {
    return {};
  }
}

std::vector<json> cases_for(const Format& format, const json& file, std::optional<int> ranks) {
  std::vector<json> cases;
  std::ranges::copy_if(file.at("cases"), std::back_inserter(cases),
                       [&](const json& one) { return ranks_for(format, one) == ranks; });
  return cases;
}

ReplaySummary replay(const Format& format, const json& file, int ranks, std::size_t first, const Progress& progress) {
  ReplaySummary summary;
  std::optional<mpi::Communicator> world;
  if (ranks > 0) world.emplace(mpi::Communicator::world());
  const auto cases = cases_for(format, file, ranks);
  for (auto i = first; i < cases.size(); ++i) {
    const auto mine = judge(format, cases[i], file);
    count(summary, cases[i], world ? agree(*world, mine) : mine);
    if (progress) progress(summary);
  }
  format.finish();
  return summary;
}

}  // namespace hortator::golden
