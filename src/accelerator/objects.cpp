#include <ATen/ops/empty.h>

#include <hortator/accelerator.hpp>

#include "accelerator/training.hpp"
#include "base/call_site.hpp"
#include "base/text.hpp"
#include "comm/operands.hpp"
#include "mpi/agree.hpp"
#include "mpi/collectives.hpp"

namespace hortator {

void ObjectWriter::write_text(std::string_view text) {
  write_size(text.size());
  write_bytes(text.data(), text.size());
}

void ObjectWriter::write_tensor(const at::Tensor& tensor) {
  write_plain(tensor.defined());
  if (!tensor.defined()) return;
  if (tensor.layout() != at::kStrided) {
    throw UsageError({.what = text::concat("an object holds a tensor of layout ", tensor.layout()),
                      .why = "only dense tensors travel in objects",
                      .hint = "make it dense first"});
  }
  const auto data = tensor.detach().to(at::kCPU).resolve_conj().resolve_neg().contiguous();
  write_plain(data.scalar_type());
  write_size(data.sizes().size());
  for (const auto size : data.sizes()) write_plain(size);
  write_bytes(data.const_data_ptr(), data.nbytes());
}

void ObjectWriter::write_state(const StateDict& state) { detail::write_object(*this, state.values()); }

void ObjectReader::read_bytes(void* data, std::size_t count) {
  if (count > rest_.size()) {
    throw Error(
        {.what = text::concat("an object's bytes end early: ", count, " more are needed, ", rest_.size(), " are left"),
         .why = "it was written as another type than it is read as"});
  }
  if (count > 0) std::memcpy(data, rest_.data(), count);
  rest_.remove_prefix(count);
}

std::size_t ObjectReader::read_size() {
  std::uint64_t size = 0;
  read_plain(size);
  return size;
}

std::string ObjectReader::read_text() {
  const auto size = read_size();
  std::string text(std::min(size, rest_.size() + 1), '\0');  // one byte too many is enough to be refused
  read_bytes(text.data(), text.size());
  return text;
}

at::Tensor ObjectReader::read_tensor() {
  bool defined = false;
  read_plain(defined);
  if (!defined) return {};
  auto type = at::kFloat;
  read_plain(type);
  std::vector<std::int64_t> sizes;
  for (auto left = read_size(); left > 0; --left) read_plain(sizes.emplace_back());
  auto tensor = at::empty(sizes, type);
  read_bytes(tensor.mutable_data_ptr(), tensor.nbytes());
  return tensor;
}

StateDict ObjectReader::read_state() {
  std::map<std::string, StateDict::Value> values;
  detail::read_object(*this, values);
  StateDict state;
  for (const auto& [name, value] : values) {
    std::visit([&, &name = name](const auto& held) { state.put(name, held); }, value);
  }
  return state;
}

void detail::check_read_whole(const ObjectReader& in) {
  if (in.at_end()) return;
  throw Error({.what = "an object left some of its bytes unread", .why = "it does not read what it writes"});
}

// What a rank cannot write or read is an error on all.
std::vector<std::string> Accelerator::gather_encoded(const std::function<std::string()>& encode) const {
  const CallSite site(__builtin_return_address(0));
  std::string mine;
  mpi::all_or_none(training_->host(), [&] { mine = encode(); });
  return mpi::all_gather(training_->host(), std::string_view(mine));
}

std::string Accelerator::broadcast_encoded(const std::function<std::string()>& encode, int from_process) const {
  const CallSite site(__builtin_return_address(0));
  std::string mine;
  mpi::all_or_none(training_->host(), [&] {
    comm::check_root(from_process, num_processes());
    if (from_process == process_index()) mine = encode();
  });
  return mpi::broadcast(training_->host(), std::string_view(mine), from_process);
}

void Accelerator::decode_together(const std::function<void()>& decode) const {
  mpi::all_or_none(training_->host(), decode);
}

void Accelerator::set_trigger() { training_->triggered = true; }

bool Accelerator::check_trigger() {
  const CallSite site(__builtin_return_address(0));
  return mpi::all_reduce(training_->host(), std::exchange(training_->triggered, false), MPI_LOR);
}

}  // namespace hortator
