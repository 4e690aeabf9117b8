#pragma once

#include <filesystem>
#include <hortator/datasets/labelled_texts.hpp>
#include <string>
#include <vector>

/// Which columns of a file hold texts and labels.
namespace hortator::data {

struct TextColumns {
  std::string text = {};
  std::string pair = {};  ///< empty: there are no pairs
  std::string label = {};
};

/// The columns that the options name, or those of the first of GLUE's tasks whose columns the file has. Throws
/// UsageError with the names that there are. Pure.
TextColumns choose_columns(const std::vector<std::string>& columns, const LabelledTextsOptions& options,
                           const std::filesystem::path& path);

/// The members of the first object of a file of JSON lines. Throws FileError if there is none.
std::vector<std::string> json_members(const std::filesystem::path& path);

}  // namespace hortator::data
