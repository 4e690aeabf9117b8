#include "accelerator/structures/encoded_objects.hpp"

#include <string_view>

#include "comm/operands.hpp"
#include "mpi/agree.hpp"
#include "mpi/collectives.hpp"

namespace hortator::accelerator {

std::vector<std::string> gather_encoded(const mpi::Communicator& host, const std::function<std::string()>& encode) {
  std::string mine;
  mpi::all_or_none(host, [&] { mine = encode(); });
  return mpi::all_gather(host, std::string_view(mine));
}

std::string broadcast_encoded(const mpi::Communicator& host, const std::function<std::string()>& encode, int root) {
  std::string mine;
  mpi::all_or_none(host, [&] {
    comm::check_root(root, host.size());
    if (root == host.rank()) mine = encode();
  });
  return mpi::broadcast(host, std::string_view(mine), root);
}

}  // namespace hortator::accelerator
