#pragma once

#include <functional>
#include <memory>
#include <string_view>
#include <vector>

namespace hortator::step {

class ModelCore;

/// Reports backward passes that reach no prepared model: their gradients are not averaged, and prepared optimizers have
/// nothing to step. Checks the first pass and warns; in debug mode checks each pass and throws.
class ReachCheck {
 public:
  using Models = std::vector<std::shared_ptr<ModelCore>>;
  using Warn = std::function<void(std::string_view)>;
  enum class Report { warning, error };

  /// Keeps a reference to `models`. `warn` by default writes a warning to the log.
  ReachCheck(const Models& models, Report report, Warn warn = {});

  /// Runs the pass and checks it.
  void run(const std::function<void()>& backward);

 private:
  const Models& models_;
  const Report report_;
  const Warn warn_;
  bool is_over_ = false;
};

}  // namespace hortator::step
