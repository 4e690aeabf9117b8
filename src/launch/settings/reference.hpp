#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "launch/settings/file.hpp"
#include "launch/settings/settings.hpp"

/// What Accelerate's users have written down already: its flags and its default_config.yaml.
namespace hortator::launching {

enum class Verdict { honoured, noted, refused };

/// Where the reference has the name.
enum class Place { flag, file, both };

struct ReferenceName {
  std::string_view name;
  Place place = Place::both;
  Verdict verdict = Verdict::noted;
  std::string_view key = "";   ///< of ours, that says the same
  std::string_view text = "";  ///< what happens in its place, or the way round
};

std::span<const ReferenceName> reference_names();

/// Of one line of a file.
struct Remark {
  std::string key = "";
  int line = 0;
  Verdict verdict = Verdict::noted;
  std::string text = "";
};

struct Reference {
  Layer layer = {};
  std::vector<Remark> remarks = {};  ///< one an entry
};

/// Does a file with these entries come from `accelerate config`?
bool is_reference(const std::vector<Entry>& entries);

/// What such a file means here. Throws for no value: what cannot be had is a refused remark.
Reference read_reference(const std::vector<Entry>& entries, const std::string& file);

/// UsageError with the first refused remark, by file, line and key.
void refuse(const Reference& reference, const std::string& file);

/// "mixed_precision   honoured" a line
std::string table_of(const std::vector<Remark>& remarks);

/// Why "--multi_gpu" is no flag of ours, for a flag of the reference; empty for others.
std::string hint_for_flag(std::string_view flag);

}  // namespace hortator::launching
