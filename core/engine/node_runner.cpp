#include "core/engine/node_runner.hpp"

#include <algorithm>
#include <cstring>

#include "core/base/error.hpp"
#include "core/plugin/status.hpp"

namespace cairn {
namespace {

// Elements [start, end) of the first dimension; shape goes to the arena.
cairn_tensor_view cut_rows(const cairn_tensor_view& view, std::int64_t start, std::int64_t end, cairn_arena* arena) {
  cairn_tensor_view cut = view;
  auto* shape = static_cast<std::int64_t*>(
      arena->alloc(arena, sizeof(std::int64_t) * static_cast<std::uint64_t>(view.ndim), alignof(std::int64_t)));
  if (shape == nullptr) throw ResourceExhausted("Out of memory for a step.");
  std::copy(view.shape, view.shape + view.ndim, shape);
  shape[0] = end - start;
  std::int64_t row_elements = 1;
  for (std::int32_t i = 1; i < view.ndim; ++i) row_elements *= view.shape[i];
  if (view.strides != nullptr) row_elements = view.strides[0];
  cut.shape = shape;
  cut.byte_offset += static_cast<std::uint64_t>(start * row_elements) * (view.dtype.bits / 8U);
  return cut;
}

void require_cuttable(const cairn_tensor_view& view, std::int64_t tokens, const char* what, const std::string& node) {
  if (view.data == nullptr) return;
  if (view.ndim < 1 || view.shape == nullptr || view.shape[0] != tokens) {
    throw InvalidArgument("Node '" + node + "': " + what + " does not have input_seq_len (" + std::to_string(tokens) +
                          ") rows, so the row cannot be cut into chunks.");
  }
}

}  // namespace

NodeRunner::NodeRunner(std::uint32_t index, std::string name, std::uint32_t flags, cairn_node* node,
                       const cairn_node_api& api, std::vector<Resource*> resources)
    : index_(index), name_(std::move(name)), flags_(flags), node_(node), api_{}, resources_(std::move(resources)) {
  std::memcpy(&api_, &api, std::min<std::uint64_t>(api.struct_size, sizeof(api_)));
  if (api_.prepare_inputs == nullptr) {
    throw BadFile("Node '" + name_ + "': the plugin's node table has no prepare_inputs, which is required.");
  }
  if (api_.forward == nullptr && api_.forward_batched == nullptr) {
    throw BadFile("Node '" + name_ + "': the plugin's node table has neither forward nor forward_batched.");
  }
  for (Resource* resource : resources_) {
    bound_.push_back(
        {to_abi_str(resource->key()), resource->index(), resource->kind(), resource->handle(), resource->api()});
    if (resource->kind() == CAIRN_RESOURCE_SAMPLER && sampler_ == nullptr) sampler_ = static_cast<Sampler*>(resource);
  }
  if (api_.bind_node_resources != nullptr) {
    check_status(api_.bind_node_resources(node_, {bound_.data(), bound_.size(), sizeof(cairn_bound_resource)}),
                 "Node '" + name_ + "' refused its resources");
  }
}

cairn_node_inputs NodeRunner::split(const cairn_forward_info& info, const cairn_node_inputs& row, std::int64_t start,
                                    std::int64_t end, cairn_arena* arena) const {
  cairn_node_inputs cut{};
  if (api_.split_inputs != nullptr) {
    check_status(api_.split_inputs(node_, &info, &row, start, end, arena, &cut), "split_inputs of '" + name_ + "'");
  } else {
    if (row.tensor_inputs.count > 0 || row.kwargs.count > 0 || row.resource_step_info != nullptr) {
      throw InvalidArgument(
          "Node '" + name_ +
          "' has no split_inputs, and a row with tensor_inputs, kwargs or resource_step_info cannot be "
          "cut into chunks without one.");
    }
    require_cuttable(row.input_ids, row.input_seq_len, "input_ids", name_);
    require_cuttable(row.input_embeds, row.input_seq_len, "input_embeds", name_);
    cut = row;
    if (row.input_ids.data != nullptr) cut.input_ids = cut_rows(row.input_ids, start, end, arena);
    if (row.input_embeds.data != nullptr) cut.input_embeds = cut_rows(row.input_embeds, start, end, arena);
    if (row.custom_pos_ids.count > 0) {
      throw InvalidArgument("Node '" + name_ + "' has no split_inputs, and a row with custom_pos_ids needs one.");
    }
    cut.input_seq_len = end - start;
  }
  cut.graph_walk = row.graph_walk;
  cut.chunk_start = start;
  cut.chunk_end = end;
  cut.is_last_chunk = end == row.input_seq_len ? 1U : 0U;
  return cut;
}

}  // namespace cairn
