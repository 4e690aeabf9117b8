#pragma once

#include <functional>
#include <initializer_list>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// Replays cases that were measured with Hugging Face Accelerate on this library: the Catch2 tests replay the files of
/// this folder, golden_replay any file of these formats.
namespace hortator::golden {

using nlohmann::json;

/// The result of one case on this rank.
struct Outcome {
  std::string difference = {};  ///< the first difference; empty: none
  /// The rule by which the case differs from Accelerate on purpose; empty: none.
  std::string rule = {};
};

inline Outcome equal() { return {}; }
inline Outcome differs(std::string difference) { return {.difference = std::move(difference)}; }
inline Outcome on_purpose(std::string rule) { return {.rule = std::move(rule)}; }
/// Compares two values that must be equal; the difference has `name` and both values.
Outcome compare(std::string_view name, const json& ours, const json& theirs);

/// Returns a boolean, which golden files store as 1 or 0.
inline bool flag(const json& one, const char* name) { return one.at(name).get<int>() != 0; }

/// One format of golden files.
struct Format {
  std::string name;
  /// Whether a file has this format, by the fields of its cases; the file name does not matter.
  std::function<bool(const json& file)> recognises;
  /// The number of ranks that a case needs; 0: it is replayed without MPI.
  std::function<int(const json& one)> world;
  /// Replays a case of `file` and compares. An exception counts as a difference. With ranks: @collective
  std::function<Outcome(const json& one, const json& file)> judge;
  /// Called after the last case: releases what was kept between cases.
  std::function<void()> finish = [] {};
};

/// Each is defined in replay_<name>.cpp.
Format accumulate();
Format batch_sampler_shard();
Format checkpoint_naming();
Format collectives();
Format convert_size();
Format environment();
Format estimate_memory();
Format find_batch_size();
Format gather_for_metrics();
Format grad_scaler();
Format infer_auto_device_map();
Format iterable_dataset_shard();
Format safetensors();
Format seedable_sampler();
Format shard_checkpoint();
Format skip_first_batches();
Format split_between_processes();
Format training_trace();

/// All formats.
const std::vector<Format>& formats();
/// Returns the format of the file. Throws if there is none, listing the known formats, or if there are several.
const Format& format_of(const json& file);

/// The results of a number of cases.
struct ReplaySummary {
  int passed = 0;  ///< including those that differ on purpose
  std::map<std::string, int> rules = {};
  std::vector<std::string> failures = {};  ///< "case 7: ..."

  int failed() const { return static_cast<int>(failures.size()); }
  std::size_t judged() const { return static_cast<std::size_t>(passed) + failures.size(); }
  int on_purpose() const;
  ReplaySummary& operator+=(const ReplaySummary& other);
};

void to_json(json& out, const ReplaySummary& summary);
void from_json(const json& in, ReplaySummary& summary);

/// Returns the text of the field. Throws unless it is one of `known`.
std::string one_of(const json& one, const char* field, std::initializer_list<const char*> known);

/// The name of a case in messages.
std::string name_of_case(const json& one);

/// Returns the file's content, plus its "folder", which contains the files that cases name. Throws UsageError if the
/// file cannot be read.
json read_file(const std::string& path);

/// The number of ranks that the case needs, 0: it is replayed without MPI; nothing if the case does not have it.
std::optional<int> ranks_for(const Format& format, const json& one);

/// The cases that need this number of ranks.
std::vector<json> cases_for(const Format& format, const json& file, std::optional<int> ranks);

/// Called after each case with the results so far.
using Progress = std::function<void(const ReplaySummary& until_now)>;

/// Replays all cases for this number of ranks, which must be that of MPI's world, starting at case number `first`.
/// @collective unless `ranks` is 0
ReplaySummary replay(const Format& format, const json& file, int ranks, std::size_t first = 0,
                     const Progress& progress = {});

}  // namespace hortator::golden
