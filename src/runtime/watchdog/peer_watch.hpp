#pragma once

namespace hortator::runtime {

/// When a rank has been killed, Open MPI's mpirun ends the others with SIGTERM, and SIGKILL a second later. From the
/// first call on, a thread uses that second to report which rank was killed (Watchdog::report_killed_peer), then ends
/// the process as SIGTERM would have. Under `hortator launch`, which reports the rank itself, it only writes this
/// rank's last collectives.
void watch_for_killed_peers();

}  // namespace hortator::runtime
