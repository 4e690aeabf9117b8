#include "accelerator/structures/same_structure.hpp"

#include <algorithm>
#include <hortator/error.hpp>

#include "comm/operands.hpp"
#include "core/hash.hpp"
#include "core/text/text.hpp"
#include "mpi/agree.hpp"
#include "mpi/collectives.hpp"

namespace hortator::accelerator {
namespace {

constexpr char separator = '\n';  // a key with a line break makes only the message odd, not the comparison

std::string describe(const at::Tensor& tensor, Alike alike) {
  if (!tensor.defined()) return "an undefined tensor";
  auto text = alike == Alike::shapes ? comm::describe(tensor)
                                     : text::concat(tensor.scalar_type(), ", ", text::count(tensor.dim(), "dimension"));
  if (tensor.layout() != at::kStrided) text += text::concat(", ", tensor.layout());
  return tensor.is_cpu() ? text : text::concat(text, " on ", tensor.device().type());
}

std::string outline_of(const std::vector<detail::Leaf>& leaves, Alike alike) {
  std::vector<std::string> lines;
  for (const auto& leaf : leaves) lines.push_back(leaf.path + ": " + describe(*leaf.tensor, alike));
  return text::join(lines, std::string(1, separator));
}

struct Difference {
  std::string ours;
  std::string theirs;
};

Difference first_difference(const std::string& ours, const std::string& theirs) {
  const auto here = text::split(ours, separator);
  const auto there = text::split(theirs, separator);
  const auto line_of = [](const std::vector<std::string>& lines, std::size_t i) {
    return i < lines.size() && !lines[i].empty() ? lines[i] : std::string("nothing more");
  };
  std::size_t i = 0;
  while (i < std::min(here.size(), there.size()) && here[i] == there[i]) ++i;
  return {line_of(here, i), line_of(there, i)};
}

}  // namespace

void check_same_structure(const mpi::Communicator& comm, std::string_view verb, const std::vector<detail::Leaf>& leaves,
                          Alike alike) {
  if (comm.size() == 1) return;
  const auto mine = outline_of(leaves, alike);
  if (mpi::equal_on_all(comm, core::hash(mine))) return;
  const auto all = mpi::all_gather(comm, std::string_view(mine));
  const auto odd = std::find_if(all.begin(), all.end(), [&](const auto& outline) { return outline != all[0]; });
  const auto rank = static_cast<int>(odd - all.begin());
  const auto [ours, theirs] = first_difference(all[0], *odd);
  throw UsageError(
      {.what = text::concat(verb, " got structures that differ between ranks: rank 0 has ", ours, ", rank ", rank,
                            " has ", theirs),
       .why = "each tensor needs its counterparts on all ranks",
       .hint = alike == Alike::shapes
                   ? "give the same structure and shapes everywhere; pad_across_processes makes sizes equal"
                   : "give the same structure everywhere"})
      .on_rank(rank);
}

}  // namespace hortator::accelerator
