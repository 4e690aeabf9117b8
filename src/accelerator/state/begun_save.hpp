#pragma once

#include <exception>
#include <filesystem>
#include <optional>
#include <set>

#include "formats/file/replacement.hpp"

namespace hortator::accelerator {

class Training;

/// A save whose hooks have been called, in a folder that nothing else has been written to. Destroyed by an exception,
/// it is abandoned; all ranks are done with it by then.
class BegunSave {
 public:
  /// Without hooks there is no folder yet. If a hook fails on one rank, all throw. @collective
  BegunSave(Training& training, const std::filesystem::path& target);
  ~BegunSave();
  BegunSave(const BegunSave&) = delete;
  BegunSave& operator=(const BegunSave&) = delete;

  const std::optional<formats::Replacement>& folder() const { return folder_; }
  const std::set<std::size_t>& left_out() const { return left_out_; }  ///< the models that hooks have left out

 private:
  void abandon() const;

  int rank_;
  int exceptions_ = std::uncaught_exceptions();
  std::optional<formats::Replacement> folder_ = {};
  std::set<std::size_t> left_out_ = {};
};

}  // namespace hortator::accelerator
