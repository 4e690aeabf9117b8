#include <ATen/autocast_mode.h>

#include <hortator/training/autocast.hpp>

namespace hortator {

namespace autocast = at::autocast;

Autocast::Autocast(c10::DeviceType device, std::optional<c10::ScalarType> type, const AutocastOptions& options)
    : device_(device) {
  if (!type) return;
  before_ = {.enabled = autocast::is_autocast_enabled(device),
             .type = autocast::get_autocast_dtype(device),
             .cache_enabled = autocast::is_autocast_cache_enabled()};
  autocast::set_autocast_enabled(device, options.enabled);
  autocast::set_autocast_dtype(device, *type);
  autocast::set_autocast_cache_enabled(options.cache_enabled);
  autocast::increment_nesting();
}

// Parameters change between forward passes, so cached casts of them must not outlive the outermost scope.
Autocast::~Autocast() {
  if (!before_) return;
  if (autocast::decrement_nesting() == 0) autocast::clear_cache();
  autocast::set_autocast_enabled(device_, before_->enabled);
  autocast::set_autocast_dtype(device_, before_->type);
  autocast::set_autocast_cache_enabled(before_->cache_enabled);
}

}  // namespace hortator
