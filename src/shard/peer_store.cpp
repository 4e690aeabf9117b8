#include "shard/peer_store.hpp"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/full.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <hortator/error.hpp>
#include <memory>
#include <numeric>

#include "base/text.hpp"
#include "comm/call_table.hpp"
#include "shard/absent_arrays.hpp"
#include "shard/interception.hpp"

namespace hortator::shard {
namespace {

at::Tensor as_tensor(const std::byte* bytes, std::int64_t elements, const at::TensorOptions& options) {
  return at::from_blob(const_cast<std::byte*>(bytes), {elements}, options);
}

constexpr int cannot = -1;  // in place of a page: this rank's disk has failed

}  // namespace

comm::Work PeerStore::fetch(const Page& page, std::span<std::byte> frame) {
  const at::NoGradGuard no_grad;
  const auto& mine = part(static_cast<std::size_t>(page.number));
  std::shared_ptr<Hold> present;
  std::exception_ptr problem;
  try {
    present = std::make_shared<Hold>(std::span(&mine, 1), Access::read);
  } catch (...) {  // it lies on a disk
    problem = std::current_exception();
  }
  meet(page.number, problem);
  auto work = std::make_shared<comm::Work>(
      peers_.all_gather(as_tensor(frame.data(), mine.numel() * peers_.size(), mine.options()), held_memory(mine)));
  return comm::Work([present, work] { work->wait(); });
}

comm::Work PeerStore::publish(const Page& page, std::span<const std::byte> frame) {
  const at::NoGradGuard no_grad;
  const auto& mine = part(static_cast<std::size_t>(page.number));
  mine.copy_(
      as_tensor(frame.data() + mine.nbytes() * static_cast<std::size_t>(peers_.rank()), mine.numel(), mine.options()));
  return {};
}

// @collective
void PeerStore::meet(int page, std::exception_ptr problem) {
  const auto options = at::TensorOptions().dtype(at::kLong).device(part(0).device());
  auto asked = at::empty({peers_.size()}, options);
  peers_.all_gather(asked, at::full({1}, problem ? cannot : page, options)).wait();
  const auto seen = asked.to(at::kCPU);
  const std::span pages(seen.const_data_ptr<std::int64_t>(), static_cast<std::size_t>(peers_.size()));
  const bool is_met = std::all_of(pages.begin(), pages.end(), [&](std::int64_t one) { return one == page; });
  if (is_met && !problem) return;
  differed_ = true;
  if (problem) std::rethrow_exception(problem);
  const auto failed = std::find(pages.begin(), pages.end(), cannot);
  if (failed == pages.end()) throw_different(pages);
  const auto rank = first_rank_ + static_cast<int>(failed - pages.begin());
  throw Error({.what = text::concat("rank ", rank, " cannot read its part of a model's parameters"),
               .why = "no node has all of them: they come together from all ranks"})
      .on_rank(rank);
}

void PeerStore::throw_different(std::span<const std::int64_t> pages) const {
  std::vector<std::string> names;
  for (const auto one : pages) names.push_back(names_[static_cast<std::size_t>(one)]);
  std::vector<int> ranks(names.size());
  std::iota(ranks.begin(), ranks.end(), first_rank_);
  const auto table = comm::tabulate(names, ranks);
  throw UsageError(
      {.what = text::concat("ranks use a model's parameters in different orders: ", table.lines),
       .why = "no node has all of what stage 3 has sharded over several nodes: parameters are brought "
              "together by all ranks, when all of them come to them",
       .hint = "use the same layers in the same order on every rank, also where nothing is learned; or set "
               "zero.shard_group to ZeroConfig::node and ddp.find_unused_parameters where ranks are meant to go "
               "different ways"})
      .on_rank(table.odd_rank);
}

}  // namespace hortator::shard
