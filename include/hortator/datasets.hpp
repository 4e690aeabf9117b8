#pragma once

// Data sets over files, for data_loader(). Each checks its files when it is constructed and reports errors with the
// file and the line or object. If a file is changed or truncated later, reading the next batch throws. Each rank
// constructs its own data set; copies share the open files. Reading is safe from several threads.
#include <hortator/datasets/array_rows.hpp>
#include <hortator/datasets/arrow_rows.hpp>
#include <hortator/datasets/cifar.hpp>
#include <hortator/datasets/csv_rows.hpp>
#include <hortator/datasets/examples.hpp>
#include <hortator/datasets/file_stream_options.hpp>
#include <hortator/datasets/files_per_rank.hpp>
#include <hortator/datasets/hdf5_rows.hpp>
#include <hortator/datasets/image_folder.hpp>
#include <hortator/datasets/image_transforms.hpp>
#include <hortator/datasets/json_lines.hpp>
#include <hortator/datasets/json_stream.hpp>
#include <hortator/datasets/labelled_texts.hpp>
#include <hortator/datasets/line_stream.hpp>
#include <hortator/datasets/mnist.hpp>
#include <hortator/datasets/packed_windows.hpp>
#include <hortator/datasets/safetensors_rows.hpp>
#include <hortator/datasets/shuffle_buffer.hpp>
#include <hortator/datasets/table.hpp>
#include <hortator/datasets/tar_shards.hpp>
#include <hortator/datasets/tar_stream.hpp>
#include <hortator/datasets/token_windows.hpp>
