#pragma once

#include <cstdint>
#include <istream>
#include <string>
#include <vector>

/// What ranks asked of MPI in jobs of several sizes, and whether it would do for thousands of ranks.
namespace hortator::scale {

struct Figure {
  std::string phase = {};  ///< a word that names the set-up as well, "mpi:step"
  int ranks = 0;           ///< of the job
  int rank = 0;
  std::int64_t calls = 0;
  std::int64_t bytes = 0;
};

/// A figure a line: its five members in their order. Throws at a line that is none.
std::vector<Figure> read_figures(std::istream& lines);
std::string to_line(const Figure& figure);

/// One line for each promise that is broken, comparing each size of the job with the smallest:
/// no rank makes more calls than there, and two more for each time that the job doubles (a tree's way up and down);
/// no rank but 0 moves more bytes, rank 0 not more than 100 for each further rank; in both cases, numbers may get a few
/// digits longer.
std::vector<std::string> breaches(const std::vector<Figure>& figures);

/// A line a phase and size: calls and bytes on rank 0, and the most on any other rank.
std::string table(const std::vector<Figure>& figures);

}  // namespace hortator::scale
