#pragma once

// Data sets over files, all for data_loader(). Each checks its files when it is made and says what is wrong with file
// and line or object; a file that was changed or cut since is an error when the next batch is read. Each rank makes its
// own; copies share what is open. Reading is safe from several threads.
#include <hortator/datasets/array_rows.hpp>
#include <hortator/datasets/cifar.hpp>
#include <hortator/datasets/csv_rows.hpp>
#include <hortator/datasets/examples.hpp>
#include <hortator/datasets/hdf5_rows.hpp>
#include <hortator/datasets/image_folder.hpp>
#include <hortator/datasets/json_lines.hpp>
#include <hortator/datasets/mnist.hpp>
#include <hortator/datasets/safetensors_rows.hpp>
#include <hortator/datasets/table.hpp>
#include <hortator/datasets/token_windows.hpp>
