#pragma once

#include <cstdint>
#include <hortator/error.hpp>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/text/read_keys.hpp"
#include "simulation/sections/setting_node.hpp"

namespace hortator::simulation {

/// A map of a settings file. Every key that is read counts as known; finish() refuses the others. Errors are
/// UsageErrors that begin with "FILE:LINE: models.closure.optimizer.lr: ".
class Section {
 public:
  /// `path` names the section in messages: "models.closure"; empty for the whole file. Throws unless `node` is a map.
  Section(SettingNode node, std::string file, std::string path);

  bool has(std::string_view key) const;
  std::string text(std::string_view key) const;  ///< throws if it is missing, as the others without a default
  std::string text(std::string_view key, const std::string& absent) const;
  /// One of `choices`.
  std::string choice(std::string_view key, const std::vector<std::string>& choices, const std::string& absent) const;
  bool flag(std::string_view key, bool absent) const;
  double number(std::string_view key) const;
  double number(std::string_view key, double absent) const;
  std::int64_t integer(std::string_view key, std::int64_t min) const;
  std::int64_t integer(std::string_view key, std::int64_t min, std::int64_t absent) const;
  std::vector<std::int64_t> integers(std::string_view key, std::int64_t min) const;
  std::vector<double> numbers(std::string_view key, const std::vector<double>& absent) const;
  std::vector<std::string> texts(std::string_view key, const std::vector<std::string>& absent) const;

  /// The map under `key`; nothing if it is missing.
  std::optional<Section> section(std::string_view key) const;
  /// "adam" or {type: adam, lr: 1e-3}: the type, and a section with the rest.
  std::pair<std::string, Section> typed(std::string_view key) const;
  /// The names of all entries, for maps whose keys the user chooses; all of them count as known.
  std::vector<std::string> names() const;
  /// Accepts these keys without reading them.
  void ignore(const std::vector<std::string>& keys) const;

  /// Throws for every key that was not read, with the nearest known one.
  void finish() const;
  /// An error about the value of `key`, or about the section where it is empty.
  UsageError error(std::string_view key, const std::string& what, const std::string& hint = "") const;

  const std::string& path() const { return path_; }
  const std::string& file() const { return file_; }

 private:
  const SettingNode* find(std::string_view key) const;
  const SettingNode& require(std::string_view key) const;
  const std::string& text_of(std::string_view key, const SettingNode& node) const;
  double number_of(std::string_view key, const SettingNode& node) const;
  std::int64_t integer_of(std::string_view key, const SettingNode& node, std::int64_t min) const;
  std::vector<SettingNode> items_of(std::string_view key, const SettingNode& node) const;
  std::string path_of(std::string_view key) const;

  SettingNode node_;
  std::string file_;
  std::string path_;
  mutable core::ReadKeys known_ = {};
};

}  // namespace hortator::simulation
