#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <hortator/training/answers.hpp>
#include <map>
#include <string>
#include <vector>

namespace hortator::accelerator {

/// Answers in files, one for each rank that ever wrote: "rank-3.answers". A record ends with its checksum, so that one
/// that was cut short is none.
class AnswerJournal {
 public:
  explicit AnswerJournal(std::filesystem::path folder) : folder_(std::move(folder)) {}

  /// What the folder holds of these prompts, by their numbers. Answers of other prompts do not count.
  std::map<std::int64_t, std::string> read(const std::vector<detail::PromptFacts>& prompts) const;

  /// For write(): this rank's file, behind what is there.
  void open(int rank);
  void write(std::int64_t prompt, const detail::PromptFacts& facts, std::string_view answer);
  void flush();  ///< what was written outlives the process
  void close() { file_.close(); }

  void remove() const;  ///< all files, and the folder if nothing else is in it

 private:
  std::vector<std::filesystem::path> files() const;

  std::filesystem::path folder_;
  std::filesystem::path path_;
  std::ofstream file_;
};

}  // namespace hortator::accelerator
