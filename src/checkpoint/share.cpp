#include "checkpoint/share.hpp"

#include "io/raw_file.hpp"
#include "io/tensor_slab.hpp"
#include "mpi/collectives.hpp"

namespace hortator::checkpoint {
namespace {

std::vector<at::Tensor> tensors_of(const StateDict& state) {
  std::vector<at::Tensor> tensors;
  for (const auto& [name, value] : state.values()) {
    if (const auto* tensor = std::get_if<at::Tensor>(&value)) tensors.push_back(*tensor);
  }
  return tensors;
}

std::vector<Extent> extents_of(const std::vector<at::Tensor>& tensors) {
  std::vector<Extent> extents;
  for (const auto& tensor : tensors) {
    extents.push_back({.elements = tensor.numel(), .element_bytes = static_cast<std::int64_t>(tensor.element_size())});
  }
  return extents;
}

/// Rank 0's numbers on every rank, which knows how many there are. @collective
Offsets broadcast(const mpi::Communicator& comm, Offsets offsets, std::size_t count) {
  offsets.resize(count);
  mpi::broadcast_bytes(comm, offsets.data(), count * sizeof(Offsets::value_type), 0);
  return offsets;
}

void write_share(const io::RawFile& file, const Share& share) {
  for (const auto& [i, elements] : share.slabs) {
    const auto& tensor = share.tensors[i];
    const auto before = elements.begin * static_cast<std::int64_t>(tensor.element_size());
    io::write_slab(file, share.offsets[i] + before, tensor, elements);
  }
}

}  // namespace

Share share_of_common(const mpi::Communicator& comm, const StateDict& common, const Offsets& offsets) {
  Share share;
  share.tensors = tensors_of(common);
  share.offsets = broadcast(comm, offsets, share.tensors.size());
  share.slabs = slabs_of(extents_of(share.tensors), comm.size(), comm.rank());
  return share;
}

Share share_of_own(const mpi::Communicator& comm, const StateDict& own, const std::vector<Offsets>& offsets) {
  Share share;
  share.tensors = tensors_of(own);
  share.offsets = mpi::scatter(comm, offsets, share.tensors.size());
  share.slabs = slabs_of(extents_of(share.tensors), 1, 0);
  return share;
}

void write_shares(const std::filesystem::path& path, std::span<const Share> shares) {
  auto file = io::RawFile::open_for_writing(path);
  for (const auto& share : shares) write_share(file, share);
  file.sync();
  file.close();
}

}  // namespace hortator::checkpoint
