#pragma once

#include <cstdint>
#include <istream>
#include <string>
#include <vector>

/// MPI calls of ranks in jobs of several sizes, and whether they scale to thousands of ranks.
namespace hortator::scale {

struct Figure {
  std::string phase = {};  ///< with the back end, as "mpi:step"
  int ranks = 0;           ///< of the job
  int rank = 0;
  std::int64_t calls = 0;
  std::int64_t bytes = 0;
};

/// Reads one figure per line: its five members in order. Throws for an invalid line.
std::vector<Figure> read_figures(std::istream& lines);
std::string to_line(const Figure& figure);

/// Compares each size of the job with the smallest one; returns a line for each broken rule. Calls of a rank: at most
/// two more for each doubling of the job (up and down a tree). Bytes: no more on ranks other than 0, at most 100 more
/// per additional rank on rank 0; in both cases plus some bytes, because numbers in texts may get longer.
std::vector<std::string> breaches(const std::vector<Figure>& figures);

/// One line per phase and size: calls and bytes of rank 0, and their maxima over the other ranks.
std::string table(const std::vector<Figure>& figures);

}  // namespace hortator::scale
