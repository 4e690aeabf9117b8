#include "checkpoint/write/requirements.hpp"

#include <algorithm>

#include "checkpoint/state_outline.hpp"
#include "core/hash.hpp"
#include "core/text/json.hpp"
#include "core/text/text.hpp"
#include "formats/tensor/tensor_spec.hpp"
#include "mpi/agree.hpp"
#include "mpi/collectives.hpp"

namespace hortator::checkpoint {
namespace {

constexpr std::size_t max_dimensions = 32;  // of HDF5

void require_path(const std::string& name) {
  const auto parts = text::split(name, '/');
  const bool good = name.find('\0') == std::string::npos && core::is_utf8(name) &&
                    std::ranges::none_of(parts, [](const auto& part) { return part.empty() || part == "."; });
  if (good) return;
  throw UsageError({.what = "The name " + text::quote(name) + " cannot be saved",
                    .why = "it becomes a path in the file",
                    .hint = "use a name such as 'part/part' in UTF-8, without empty parts"});
}

void require_tensor(const std::string& name, const at::Tensor& tensor) {
  const auto spec = formats::spec_of(tensor);
  const bool good =
      tensor.layout() == at::kStrided && !formats::type_name(spec.type).empty() && spec.shape.size() <= max_dimensions;
  if (good) return;
  throw UsageError(
      {.what = text::concat("The tensor ", text::quote(name), " (", formats::to_string(spec), ") cannot be saved"),
       .why = "files hold dense tensors of plain numbers with up to 32 dimensions",
       .hint = "save a dense copy of it"});
}

/// A path cannot be both an entry and a folder of entries.
void require_no_entry_in_entry(const StateDict& state) {
  for (const auto& [name, value] : state.values()) {
    for (auto slash = name.find('/'); slash != std::string::npos; slash = name.find('/', slash + 1)) {
      const auto folder = name.substr(0, slash);
      if (!state.contains(folder)) continue;
      throw UsageError(
          {.what = text::concat(text::quote(folder), " is an entry and also the folder of ", text::quote(name)),
           .why = "in the file it can only be one of the two",
           .hint = "rename one of them"});
    }
  }
}

}  // namespace

void require_storable(const StateDict& state) {
  for (const auto& [name, value] : state.values()) {
    require_path(name);
    if (const auto* tensor = std::get_if<at::Tensor>(&value)) require_tensor(name, *tensor);
  }
  require_no_entry_in_entry(state);
}

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
