#include "step/state_broadcast.hpp"

#include <hortator/training/objects.hpp>
#include <string>

#include "mpi/agree.hpp"
#include "mpi/collectives.hpp"

namespace hortator::step {

void broadcast_state(const mpi::Communicator& host, int root, const std::function<StateDict()>& save,
                     const std::function<void(const StateDict&)>& load) {
  std::string bytes;
  mpi::all_or_none(host, [&] {
    if (host.rank() != root) return;
    ObjectWriter out;
    out.write_state(save());
    bytes = out.take();
  });
  bytes = mpi::broadcast(host, std::string_view(bytes), root);
  mpi::all_or_none(host, [&] {
    if (host.rank() != root) load(ObjectReader(bytes).read_state());
  });
}

}  // namespace hortator::step
