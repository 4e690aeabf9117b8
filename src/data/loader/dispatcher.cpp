#include "data/loader/dispatcher.hpp"

#include <hortator/error.hpp>

#include "mpi/collectives.hpp"
#include "runtime/shared_name.hpp"

namespace hortator::data {
namespace {

struct Header {
  Dispatch::Kind kind;
  std::int64_t samples;
  std::uint64_t state_bytes;
  std::uint64_t content_bytes;
};

// The only rank of a node sends nothing.
std::size_t bytes_of_pipe(const mpi::Communicator& node) { return node.size() == 1 ? 0 : NodePipe::bytes; }

}  // namespace

Dispatcher::Dispatcher(const mpi::Communicator& node, const mpi::Communicator& all, int rank)
    : node_(node.split(0, node.rank())),
      ranks_(mpi::all_gather(node_, rank)),
      memory_(node_, all, bytes_of_pipe(node_), runtime::shared_name("batches")),
      opened_(ranks_.size()) {}

NodePipe Dispatcher::pipe_to(std::size_t local) const { return NodePipe(memory_.part(static_cast<int>(local))); }

std::uint64_t Dispatcher::enter() {
  ++entered_;
  if (!reads()) pipe_to(static_cast<std::size_t>(node_.rank())).enter(entered_);
  return entered_;
}

void Dispatcher::leave(std::uint64_t pass) noexcept {
  left_ = pass;
  if (!reads()) return pipe_to(static_cast<std::size_t>(node_.rank())).leave(pass);
  for (std::size_t local = 1; local < ranks_.size(); ++local) pipe_to(local).close(pass);
}

void Dispatcher::throw_if_left(std::uint64_t pass) const {
  if (left_ >= pass)
    throw Error({.what = "This rank has left its loop over the loader",
                 .why = "it reads the batches of the other ranks of its node, which continue",
                 .hint = "leave the loop on all ranks at the same batch"});
}

void Dispatcher::send(std::size_t local, std::uint64_t pass, const Dispatch& dispatch) {
  auto pipe = pipe_to(local);
  const auto check = [&] { throw_if_left(pass); };
  if (opened_[local] != pass && !pipe.open(pass, check)) return;
  opened_[local] = pass;
  const Header header{.kind = dispatch.kind,
                      .samples = dispatch.samples,
                      .state_bytes = dispatch.state.size(),
                      .content_bytes = dispatch.content.size()};
  static_cast<void>(pipe.write(pass, &header, sizeof header, check) &&
                    pipe.write(pass, dispatch.state.data(), dispatch.state.size(), check) &&
                    pipe.write(pass, dispatch.content.data(), dispatch.content.size(), check));
}

Dispatch Dispatcher::receive(std::uint64_t pass) {
  auto pipe = pipe_to(static_cast<std::size_t>(node_.rank()));
  const auto check = [&] { throw_if_left(pass); };
  Header header{};
  pipe.read(pass, &header, sizeof header, check);
  Dispatch dispatch{.kind = header.kind, .samples = header.samples};
  dispatch.state.resize(header.state_bytes);
  dispatch.content.resize(header.content_bytes);
  pipe.read(pass, dispatch.state.data(), dispatch.state.size(), check);
  pipe.read(pass, dispatch.content.data(), dispatch.content.size(), check);
  return dispatch;
}

}  // namespace hortator::data
