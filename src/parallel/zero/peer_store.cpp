#include "parallel/zero/peer_store.hpp"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/full.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <hortator/error.hpp>
#include <memory>

#include "comm/decorators/call_table.hpp"
#include "core/text/text.hpp"
#include "mpi/collectives.hpp"
#include "paging/interception/interception.hpp"
#include "parallel/zero/absent_arrays.hpp"

namespace hortator::parallel {
namespace {

at::Tensor as_tensor(const std::byte* bytes, std::int64_t elements, const at::Tensor& like) {
  return at::for_blob(const_cast<std::byte*>(bytes), {elements})
      .options(like.options())
      .target_device(like.device())
      .make_tensor();
}

constexpr int failed_read = -1;  // instead of a page: this rank's disk has failed

}  // namespace

comm::Work PeerStore::fetch(const paging::Page& page, std::span<std::byte> frame) {
  const at::NoGradGuard no_grad;
  const auto& mine = part(static_cast<std::size_t>(page.number));
  std::shared_ptr<paging::Hold> present;
  std::exception_ptr problem;
  try {
    present = std::make_shared<paging::Hold>(std::span(&mine, 1), paging::Access::read);
  } catch (...) {  // its part is on a disk
    problem = std::current_exception();
  }
  agree_on(page.number, problem);
  auto work = std::make_shared<comm::Work>(
      ranks_.peers.all_gather(as_tensor(frame.data(), mine.numel() * ranks_.peers.size(), mine), held_memory(mine)));
  return comm::Work([present, work] { work->wait(); });
}

comm::Work PeerStore::publish(const paging::Page& page, std::span<const std::byte> frame) {
  const at::NoGradGuard no_grad;
  const auto& mine = part(static_cast<std::size_t>(page.number));
  const auto before = mine.nbytes() * static_cast<std::size_t>(ranks_.peers.rank());
  mine.copy_(as_tensor(frame.data() + before, mine.numel(), mine));
  return {};
}

// @collective
void PeerStore::agree_on(int page, const std::exception_ptr& problem) {
  const auto pages = fetched_by_all(problem ? failed_read : page);
  const bool is_agreed = std::all_of(pages.begin(), pages.end(), [&](std::int64_t one) { return one == page; });
  if (is_agreed && !problem) return;
  diverged_ = true;
  if (problem) std::rethrow_exception(problem);
  const auto failed = std::find(pages.begin(), pages.end(), failed_read);
  if (failed == pages.end()) throw_different(pages);
  const auto rank = ranks_.first + ranks_.stride * static_cast<int>(failed - pages.begin());
  throw Error({.what = text::concat("Rank ", rank, " cannot read its part of a model's parameters"),
               .why = "no node has all of them: they are gathered from all ranks"})
      .on_rank(rank);
}

// @collective
std::vector<std::int64_t> PeerStore::fetched_by_all(std::int64_t page) const {
  if (ranks_.host != nullptr) return mpi::all_gather(*ranks_.host, page);
  const auto all = at::empty({ranks_.peers.size()}, at::kLong);
  ranks_.peers.all_gather(all, at::full({1}, page, at::kLong)).wait();
  const auto* first = all.const_data_ptr<std::int64_t>();
  return {first, first + all.numel()};
}

void PeerStore::throw_different(std::span<const std::int64_t> pages) const {
  std::vector<std::string> names;
  for (const auto one : pages) names.push_back(names_[static_cast<std::size_t>(one)]);
  std::vector<int> ranks(names.size());
  for (std::size_t i = 0; i < ranks.size(); ++i) ranks[i] = ranks_.first + ranks_.stride * static_cast<int>(i);
  const auto table = comm::tabulate(names, ranks);
  throw UsageError(
      {.what = text::concat("Ranks use a model's parameters in different orders: ", table.lines),
       .why = "at stage 3 over several nodes no node has all parameters: all ranks gather them together, when all of "
              "them reach them",
       .hint = "use the same layers in the same order on every rank, in evaluation as well; if ranks are meant to use "
               "different layers, set zero.shard_group to ZeroConfig::node and ddp.find_unused_parameters"})
      .on_rank(table.odd_rank);
}

}  // namespace hortator::parallel
