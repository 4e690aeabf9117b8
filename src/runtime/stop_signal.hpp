#pragma once

namespace hortator::runtime {

/// From now on SIGUSR1, by which schedulers announce the end of a job's time, is remembered and no longer ends the
/// process. A handler that the application has set stays.
void survive_stop_signal();

bool stop_signal_received();

}  // namespace hortator::runtime
