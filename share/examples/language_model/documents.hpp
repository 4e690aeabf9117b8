#pragma once

#include <ATen/core/Tensor.h>

#include <filesystem>
#include <hortator/models/model.hpp>
#include <string>
#include <vector>

namespace language_model {

/// How texts become documents of tokens.
struct TextOptions {
  std::filesystem::path model = {};  ///< the folder with tokenizer.json
  std::vector<std::filesystem::path> files = {};
  bool bytes = false;          ///< a token is a byte
  std::string documents = {};  ///< "file" or "line": what is a document of a text file
  std::string column = {};     ///< of a Parquet or Arrow file, whose rows are documents
};

/// Reads the files and returns the tokens of each document. Throws UsageError if the model does not know a token.
std::vector<at::Tensor> read_documents(const TextOptions& options, const hortator::models::ModelConfig& config);

}  // namespace language_model
