#include "launch/settings/reference.hpp"

#include <algorithm>
#include <array>
#include <hortator/error.hpp>
#include <iomanip>
#include <map>

#include "core/text/text.hpp"

namespace hortator::launching {
namespace {

// clang-format off
constexpr auto known_names = std::to_array<ReferenceName>({
#include "launch/settings/reference_table.inc"
});
// clang-format on

const ReferenceName* find(std::string_view name) {
  const auto known =
      std::find_if(known_names.begin(), known_names.end(), [&](const auto& row) { return row.name == name; });
  return known != known_names.end() ? &*known : nullptr;
}

std::string_view last_part(std::string_view key) {
  const auto dot = key.rfind('.');
  return dot == std::string_view::npos ? key : key.substr(dot + 1);
}

// What the reference writes for a thing that is not used.
bool is_unused(const Entry& entry) {
  if (entry.words.empty()) return true;
  const auto& word = entry.words.front();
  return word.empty() || word == "none" || word == "None" || word == "1" ? true : text::parse_bool(word) == false;
}

// The strategies of sharding by their names and numbers, as stages where these say as much; nothing for those that are
// none.
std::optional<std::string> stage_of(std::string_view word) {
  static const std::map<std::string_view, std::string> stages = {{"FULL_SHARD", "3"},
                                                                 {"1", "3"},
                                                                 {"SHARD_GRAD_OP", "2"},
                                                                 {"2", "2"},
                                                                 {"NO_SHARD", "0"},
                                                                 {"3", "0"},
                                                                 {"HYBRID_SHARD", "HYBRID_SHARD"},
                                                                 {"4", "HYBRID_SHARD"},
                                                                 {"HYBRID_SHARD_ZERO2", "HYBRID_SHARD_ZERO2"},
                                                                 {"5", "HYBRID_SHARD_ZERO2"}};
  const auto stage = stages.find(word);
  if (stage != stages.end()) return stage->second;
  if (const auto is_full = text::parse_bool(word)) return *is_full ? "3" : "2";
  return std::nullopt;
}

// What the value is in our words; nothing for one that cannot be had.
std::optional<std::string> translate(const ReferenceName& row, const std::string& word) {
  if (row.key == "zero_stage" && row.name != "zero_stage") return stage_of(word);
  try {
    check_text(find_key(row.key, ""), {word}, "");
  } catch (const UsageError&) {
    return std::nullopt;
  }
  return word;
}

Verdict verdict_of_type(const std::string& word) {
  for (const auto* known : {"NO", "MULTI_CPU", "MULTI_GPU", "FSDP", "DEEPSPEED"}) {
    if (word == known) return Verdict::honoured;
  }
  return Verdict::refused;
}

Remark judge_name(const Entry& entry, const ReferenceName& row) {
  Remark remark{entry.key, entry.line, row.verdict, std::string(row.text)};
  if (row.name == "compute_environment") {
    remark.verdict = entry.words == std::vector<std::string>{"LOCAL_MACHINE"} ? Verdict::honoured : Verdict::refused;
  } else if (row.name == "distributed_type") {
    remark.verdict = entry.words.empty() ? Verdict::noted : verdict_of_type(entry.words.front());
  } else if (row.verdict == Verdict::refused && is_unused(entry)) {
    remark = {entry.key, entry.line, Verdict::noted, "not used"};
  }
  return remark;
}

// -1 processes are how the reference says that the launcher will know; one machine is what it says of every laptop,
// and must not hold a job of several nodes to one.
bool says_something(const Entry& entry, const ReferenceName& row) {
  if (entry.words.empty()) return false;
  const auto& word = entry.words.front();
  return !(row.name == "num_processes" && word == "-1") && !(row.name == "num_machines" && word == "1");
}

void read_entry(const Entry& entry, const std::string& file, Reference& reference) {
  const auto* row = find(last_part(entry.key));
  if (!row || row->place == Place::flag) {
    reference.remarks.push_back({entry.key, entry.line, Verdict::refused, "no key of Accelerate's that is known here"});
    return;
  }
  auto remark = judge_name(entry, *row);
  const bool is_said = says_something(entry, *row);
  if (!row->key.empty() && remark.verdict == Verdict::honoured) {
    const auto word = is_said ? translate(*row, entry.words.front()) : std::nullopt;
    if (word) {
      reference.layer[std::string(row->key)] = {{*word}, text::concat(file, ':', entry.line)};
    } else {
      remark.verdict = is_said ? Verdict::refused : Verdict::noted;
      remark.text = is_said ? text::concat(text::quote(entry.words.front()), ": ", row->text) : "not said";
    }
  }
  reference.remarks.push_back(std::move(remark));
}

std::string_view to_string(Verdict verdict) {
  constexpr std::array<std::string_view, 3> names = {"honoured", "noted", "refused"};
  return names[static_cast<std::size_t>(verdict)];
}

}  // namespace

std::span<const ReferenceName> reference_names() { return known_names; }

bool is_reference(const std::vector<Entry>& entries) {
  return std::any_of(entries.begin(), entries.end(), [](const Entry& entry) {
    return entry.key == "compute_environment" || entry.key == "distributed_type";
  });
}

Reference read_reference(const std::vector<Entry>& entries, const std::string& file) {
  Reference reference;
  for (const auto& entry : entries) read_entry(entry, file, reference);
  return reference;
}

void refuse(const Reference& reference, const std::string& file) {
  for (const auto& remark : reference.remarks) {
    if (remark.verdict != Verdict::refused) continue;
    throw UsageError({.what = text::concat(file, ':', remark.line, ": ", remark.key, " of Accelerate cannot be had"),
                      .why = remark.text,
                      .hint = "correct that line, or have a file of your own by `hortator config --default`"});
  }
}

std::string table_of(const std::vector<Remark>& remarks) {
  std::size_t width = 0;
  for (const auto& remark : remarks) width = std::max(width, remark.key.size());
  std::ostringstream out;
  for (const auto& remark : remarks) {
    out << std::left << std::setw(static_cast<int>(width) + 2) << remark.key << std::setw(10)
        << to_string(remark.verdict) << remark.text << '\n';
  }
  return std::move(out).str();
}

std::string hint_for_flag(std::string_view flag) {
  while (flag.starts_with('-')) flag.remove_prefix(1);
  std::string name(flag.substr(0, flag.find('=')));
  std::replace(name.begin(), name.end(), '-', '_');
  const auto* row = find(name);
  if (!row || row->place == Place::file) return "";
  if (row->key.empty()) return "that is Accelerate's: " + std::string(row->text);
  return text::concat("that is Accelerate's; here it is --", find_key(row->key, "").flag);
}

}  // namespace hortator::launching
