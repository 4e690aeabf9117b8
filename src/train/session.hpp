#pragma once

#include <hortator/error.hpp>
#include <string>

namespace hortator::train {

/// The life of what one Accelerator prepared. Handles share it and ask it before they act.
class Session {
 public:
  void end() { alive_ = false; }

  void check_alive(const std::string& handle) const {
    if (alive_) return;
    throw UsageError({.what = "a prepared " + handle + " was used after its Accelerator had gone or had freed it",
                      .why = "its communicators and gradient buckets no longer exist",
                      .hint = "keep the Accelerator alive for as long as its handles, or prepare again"});
  }

 private:
  bool alive_ = true;
};

}  // namespace hortator::train
