#include "checkpoint/write/agreement.hpp"

#include "checkpoint/state_outline.hpp"
#include "core/hash.hpp"
#include "core/text/text.hpp"
#include "mpi/agree.hpp"
#include "mpi/collectives.hpp"

namespace hortator::checkpoint {

namespace fs = std::filesystem;

fs::path agreed_target(const mpi::Communicator& comm, const fs::path& folder) {
  std::string target;
  mpi::all_or_none(comm, [&] {
    if (folder.empty()) throw UsageError({.what = "No folder to save to was given"});
    // A trailing slash would make the last name empty.
    target = (fs::absolute(folder) / "").lexically_normal().parent_path();
  });
  mpi::same_on_all(comm, target, "the folder to save into");
  mpi::all_or_none(comm, [&] {
    if (comm.rank() == 0) target = fs::weakly_canonical(target);
  });
  return mpi::broadcast(comm, target);
}

void require_same(const mpi::Communicator& comm, const StateOutline& common) {
  const auto mine = pack(common);
  if (mpi::equal_on_all(comm, core::hash(mine))) return;
  const auto first = mpi::broadcast(comm, mine);
  mpi::all_or_none(comm, [&] {
    if (mine == first) return;
    throw UsageError(
        {.what = text::concat("The state to save differs between ranks: ", first_difference(unpack(first), common)),
         .why = text::concat("'here' is rank 0, 'there' is rank ", comm.rank(), "; one copy is saved for all ranks"),
         .hint = "build the same models, optimizers and objects on every rank, and step them equally often: ranks with "
                 "different numbers of batches need join_uneven_inputs, or loaders with even_batches"});
  });
}

}  // namespace hortator::checkpoint
