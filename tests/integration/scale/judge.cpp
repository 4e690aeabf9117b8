// judge < FIGURES: prints the table, then each breach of the rules of figures.hpp; fails if there is one.
#include <exception>
#include <iostream>

#include "figures.hpp"

int main() {
  try {
    const auto figures = hortator::scale::read_figures(std::cin);
    std::cout << hortator::scale::table(figures);
    const auto lines = hortator::scale::breaches(figures);
    for (const auto& line : lines) std::cout << "BREACH " << line << '\n';
    return figures.empty() || !lines.empty() ? 1 : 0;
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
