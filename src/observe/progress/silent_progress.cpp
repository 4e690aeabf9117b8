#include "observe/progress/silent_progress.hpp"

namespace hortator::observe {

void SilentProgress::start(std::string_view /*title*/, std::int64_t /*total*/, std::int64_t /*done*/) {}
void SilentProgress::advance() {}
void SilentProgress::set(std::string_view /*name*/, Loggable /*value*/) {}
void SilentProgress::finish() noexcept {}

}  // namespace hortator::observe
