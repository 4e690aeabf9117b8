#pragma once

#include <functional>
#include <initializer_list>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// The cases measured on the reference, run against the library: by the Catch2 tests of this folder over the public
/// files, and by golden_replay over any file of these formats.
namespace hortator::golden {

using nlohmann::json;

/// What became of one case on this rank.
struct Outcome {
  std::string difference = {};  ///< the first one; empty: there is none
  /// Of a case that differs from the reference on purpose, and behaves as this rule says: the rule's name.
  std::string rule = {};
};

inline Outcome equal() { return {}; }
inline Outcome differs(std::string difference) { return {.difference = std::move(difference)}; }
inline Outcome on_purpose(std::string rule) { return {.rule = std::move(rule)}; }
/// Of two values that must be equal: what `name` is here and in the case.
Outcome compare(std::string_view name, const json& ours, const json& theirs);

/// Of what Python has as yes or no, and the files as 1 or 0.
inline bool flag(const json& one, const char* name) { return one.at(name).get<int>() != 0; }

/// One format: which files have it, and how one of its cases is judged.
struct Format {
  std::string name;
  /// By what its cases look like; names of files do not count.
  std::function<bool(const json& file)> recognises;
  /// How many ranks a case needs; 0: none of its own, it is judged without MPI.
  std::function<int(const json& one)> world;
  /// `file` is what surrounds the case. With ranks: @collective over all of them. What it throws is a difference.
  std::function<Outcome(const json& one, const json& file)> judge;
  /// After the last case: lets go of what was kept between cases.
  std::function<void()> finish = [] {};
};

/// Each in a file of its own: replay_<name>.cpp.
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

/// All that there are.
const std::vector<Format>& formats();
/// Throws, listing what is known, when no format or several have such cases.
const Format& format_of(const json& file);

/// What became of a number of cases.
struct Verdict {
  int passed = 0;  ///< those on purpose among them
  std::map<std::string, int> rules = {};
  std::vector<std::string> failures = {};  ///< "case 7: ..."

  int failed() const { return static_cast<int>(failures.size()); }
  std::size_t judged() const { return static_cast<std::size_t>(passed) + failures.size(); }
  int on_purpose() const;
  Verdict& operator+=(const Verdict& other);
};

void to_json(json& out, const Verdict& verdict);
void from_json(const json& in, Verdict& verdict);

/// The field's text, which is one of `known`. Throws otherwise: what a case means is not guessed.
std::string one_of(const json& one, const char* field, std::initializer_list<const char*> known);

/// How a case is called in what is printed.
std::string name_of_case(const json& one);

/// The file's content, with its "folder": the files that cases name lie there. Throws an error that says what is wrong
/// with it.
json read_file(const std::string& path);

/// How many ranks the case needs, 0: it is judged without MPI; nothing if it does not say.
std::optional<int> ranks_for(const Format& format, const json& one);

/// Those that so many ranks judge.
std::vector<json> cases_for(const Format& format, const json& file, std::optional<int> ranks);

/// Is told what is known, after each case.
using Progress = std::function<void(const Verdict& until_now)>;

/// Judges all cases that are for so many ranks, which are those of MPI's world, from the one numbered `first` on.
/// @collective unless `ranks` is 0
Verdict replay(const Format& format, const json& file, int ranks, std::size_t first = 0, const Progress& progress = {});

}  // namespace hortator::golden
