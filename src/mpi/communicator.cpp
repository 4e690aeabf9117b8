#include "mpi/communicator.hpp"

#include <utility>

#include "mpi/environment.hpp"
#include "mpi/error.hpp"

namespace hortator::mpi {

Communicator Communicator::world() { return duplicate(MPI_COMM_WORLD); }

Communicator Communicator::duplicate(MPI_Comm other) {
  MPI_Comm copy = MPI_COMM_NULL;
  check(MPI_Comm_dup(other, &copy), "MPI_Comm_dup");
  return Communicator(copy);
}

Communicator::Communicator(MPI_Comm owned) : comm_(owned) {
  MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN);
  check(MPI_Comm_rank(comm_, &rank_), "MPI_Comm_rank");
  check(MPI_Comm_size(comm_, &size_), "MPI_Comm_size");
}

Communicator::~Communicator() { free(); }

Communicator::Communicator(Communicator&& other) noexcept
    : comm_(std::exchange(other.comm_, MPI_COMM_NULL)), rank_(other.rank_), size_(other.size_) {}

Communicator& Communicator::operator=(Communicator&& other) noexcept {
  if (this != &other) {
    free();
    comm_ = std::exchange(other.comm_, MPI_COMM_NULL);
    rank_ = other.rank_;
    size_ = other.size_;
  }
  return *this;
}

void Communicator::free() noexcept {
  if (comm_ != MPI_COMM_NULL && is_usable()) MPI_Comm_free(&comm_);
}

Communicator Communicator::split(int color, int key) const {
  MPI_Comm part = MPI_COMM_NULL;
  check(MPI_Comm_split(comm_, color, key, &part), "MPI_Comm_split");
  return Communicator(part);
}

Communicator Communicator::node() const {
  MPI_Comm part = MPI_COMM_NULL;
  check(MPI_Comm_split_type(comm_, MPI_COMM_TYPE_SHARED, rank_, MPI_INFO_NULL, &part), "MPI_Comm_split_type");
  return Communicator(part);
}

}  // namespace hortator::mpi
