// The parts that ModelSpec::from_desc is made of: reading of names and index lists, walks, and resources.
// Private to core/graph.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/graph/model_spec.hpp"

namespace cairn {

// A name of at most kMaxNameBytes of valid UTF-8 without control characters. `what` says whose.
std::string read_name(cairn_str text, const std::string& what);
// A list of different names.
std::vector<std::string> read_names(const cairn_str_span& names, std::size_t limit, const std::string& what);
// A list of different indices below `bound`; `things` names what they index ("signals").
std::vector<std::uint32_t> read_indices(const cairn_u32_span& indices, std::size_t bound, const std::string& what,
                                        std::string_view things);
// Throws InvalidArgument unless `index` < `bound`.
void check_index(std::uint32_t index, std::size_t bound, const std::string& what, std::string_view things);
// Throws InvalidArgument unless `name` is new; adds it to `seen`.
void check_new_name(std::vector<std::string>& seen, const std::string& name, const std::string& what);

// Fills spec.walks and spec.combined_walks. Names, signals, loops, nodes and modalities must be there already.
// `partition_count` bounds streaming targets.
void read_walks(const cairn_model_desc& desc, std::size_t partition_count, ModelSpec& spec);
// Fills spec.resources and spec.resource_order.
void read_resources(const cairn_model_desc& desc, ModelSpec& spec);

}  // namespace cairn
