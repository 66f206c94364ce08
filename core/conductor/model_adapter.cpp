// ModelAdapter: builds the C arguments, calls the hook, copies the answer.
#include "core/conductor/model_adapter.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <utility>

#include "core/base/error.hpp"
#include "core/plugin/abi_value.hpp"
#include "core/plugin/arena.hpp"
#include "core/plugin/status.hpp"
#include "core/tensor/abi_struct.hpp"

namespace cairn {
namespace {

constexpr std::size_t kMaxTensorsPerSignal = 4096;
constexpr std::size_t kMaxPromptTokens = std::size_t{1} << 28;

// ---- to C

cairn_u32_span to_span(std::span<const std::uint32_t> values) {
  return {values.data(), values.size()};
}

cairn_tensor_view_span to_views(const SignalValue& value, Arena& arena) {
  if (value.empty()) return {nullptr, 0, sizeof(cairn_tensor_view)};
  auto* views = arena.array<cairn_tensor_view>(value.size());
  for (std::size_t i = 0; i < value.size(); ++i) views[i] = value[i]->view();
  return {views, value.size(), sizeof(cairn_tensor_view)};
}

cairn_signal_tensors_span to_signals(std::span<const SignalTensors> tensors, Arena& arena) {
  if (tensors.empty()) return {nullptr, 0, sizeof(cairn_signal_tensors)};
  auto* signals = arena.array<cairn_signal_tensors>(tensors.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    signals[i] = {tensors[i].signal, 0, to_views(tensors[i].value, arena)};
  }
  return {signals, tensors.size(), sizeof(cairn_signal_tensors)};
}

cairn_conductor_metadata to_metadata(const ConductorMetadata& metadata) {
  cairn_conductor_metadata out{};
  out.struct_size = sizeof(out);
  out.graph_walk = metadata.graph_walk;
  out.is_prefill = metadata.is_prefill ? 1 : 0;
  out.input_modalities = to_span(metadata.input_modalities);
  out.output_modalities = to_span(metadata.output_modalities);
  out.kwargs = metadata.kwargs.view();
  return out;
}

cairn_forward_args* to_forward_args(const ForwardPassArgs& args, Arena& arena) {
  auto* out = arena.array<cairn_forward_args>(1);
  out->struct_size = sizeof(*out);
  out->metadata = to_metadata(args.metadata);
  auto* inputs = arena.array<cairn_input_edge>(args.inputs.size());
  for (std::size_t i = 0; i < args.inputs.size(); ++i) {
    inputs[i] = {args.inputs[i].signal, args.inputs[i].node, to_views(args.inputs[i].value, arena)};
  }
  out->inputs = {inputs, args.inputs.size(), sizeof(cairn_input_edge)};
  out->unpersist = to_span(args.unpersist);
  out->request_done = args.request_done ? 1 : 0;
  out->step_metadata = args.step_metadata.view();
  return out;
}

// ---- from C. Everything below throws InvalidArgument for a bad answer; read_answer() turns that into the plugin's
// fault.

void release_owner(void* owner) {
  static_cast<Tensor*>(owner)->release();
}

// The tensor a view shows: its owner when it shows all of that, a tensor that keeps the owner alive when it shows a
// part.
TensorPtr from_owned_view(const cairn_tensor_view& view) {
  Tensor* owner = Tensor::from_handle(view.owner);
  const cairn_tensor_view whole = owner->view();
  if (view.ndim < 0 || view.ndim > kMaxTensorDims || (view.ndim > 0 && view.shape == nullptr)) {
    throw InvalidArgument("a tensor view has " + std::to_string(view.ndim) + " dimensions or no shape");
  }
  const bool same_type = view.dtype.code == whole.dtype.code && view.dtype.bits == whole.dtype.bits &&
                         view.dtype.lanes == whole.dtype.lanes;
  const bool same_start = static_cast<const std::byte*>(view.data) + view.byte_offset == owner->data();
  if (same_type && same_start && view.strides == nullptr && view.ndim == whole.ndim &&
      std::equal(view.shape, view.shape + view.ndim, whole.shape)) {
    return TensorPtr::retain(owner);
  }
  owner->retain();
  TensorPtr part;
  try {
    part = Tensor::wrap(view, release_owner, owner);
  } catch (...) {
    owner->release();
    throw;
  }
  const std::byte* first = part->data();
  if (part->nbytes() > 0 &&
      (std::less<>()(first, owner->data()) || std::less<>()(owner->data() + owner->nbytes(), first + part->nbytes()))) {
    throw InvalidArgument("a tensor view reaches outside of the tensor that it names as its owner");
  }
  return part;
}

SignalValue from_views(const cairn_tensor_view_span& views, bool owner_required, const std::string& what) {
  check_span(views, kMaxTensorsPerSignal, what);
  SignalValue value;
  for (std::uint64_t i = 0; i < views.count; ++i) {
    const cairn_tensor_view view = span_element(views, i);
    if (view.owner != nullptr) {
      value.push_back(from_owned_view(view));
    } else if (owner_required) {
      throw InvalidArgument(what + " has a tensor view without an owner; retain or create a host tensor for it");
    } else {
      value.push_back(Tensor::copy_of(view));
    }
  }
  return value;
}

std::vector<std::uint32_t> from_list(const cairn_u32_span& list, std::size_t limit, const std::string& what) {
  check_span(list, limit, what);
  return {list.data, list.data + list.count};
}

ForwardPassArgs from_forward_args(const cairn_forward_args& answer) {
  const cairn_forward_args source = copy_sized(&answer);
  ForwardPassArgs args;
  args.metadata.graph_walk = source.metadata.graph_walk;
  args.metadata.is_prefill = source.metadata.is_prefill != 0;
  args.metadata.input_modalities = from_list(source.metadata.input_modalities, kMaxNames, "metadata.input_modalities");
  args.metadata.output_modalities =
      from_list(source.metadata.output_modalities, kMaxNames, "metadata.output_modalities");
  args.metadata.kwargs = OwnedMap::copy_of(source.metadata.kwargs, "metadata.kwargs");
  check_span(source.inputs, kMaxNodes * kMaxSignals, "inputs");
  for (std::uint64_t i = 0; i < source.inputs.count; ++i) {
    const cairn_input_edge edge = span_element(source.inputs, i);
    args.inputs.push_back(
        {edge.node, edge.signal, from_views(edge.tensors, true, "inputs[" + std::to_string(i) + "]")});
  }
  args.unpersist = from_list(source.unpersist, kMaxSignals, "unpersist");
  args.request_done = source.request_done != 0;
  args.step_metadata = OwnedMap::copy_of(source.step_metadata, "step_metadata");
  return args;
}

// Calls a hook and reads its answer. A bad answer is the plugin's fault, not the request's.
template <class Call, class Read>
auto ask(const ModelSpec& spec, const char* hook, Call call, Read read) {
  const std::string who = "The model's " + std::string(hook);
  take_status_message();  // an older one must not be taken for this call's
  check_status(call(), who);
  try {
    return read();
  } catch (const InvalidArgument& error) {
    throw InternalError(who + " of \"" + spec.name + "\" gave a bad answer: " + error.what());
  }
}

}  // namespace

ModelAdapter::ModelAdapter(const cairn_model_api& api, cairn_model* model, const ModelSpec& spec)
    : api_(api), model_(model), spec_(spec) {
  if (api.initial_forward_args == nullptr) {
    throw BadFile("The plugin's model table has no initial_forward_args, which every model needs.");
  }
}

PromptResult ModelAdapter::process_prompt(const RequestSpec& request) {
  std::vector<std::int32_t> byte_ids;
  std::span<const std::int32_t> ids = request.prompt_ids;
  if (ids.empty() && spec_.text == CAIRN_TEXT_BYTES) {
    for (const char byte : request.prompt_text) byte_ids.push_back(static_cast<unsigned char>(byte));
    ids = byte_ids;
  }
  if (ids.size() > kMaxPromptTokens) {
    throw InvalidArgument("The prompt has " + std::to_string(ids.size()) + " tokens, more than any model takes.",
                          "prompt");
  }
  if (api_.process_prompt == nullptr) return ids_as_prompt(ids);
  const auto input_modalities = modality_indices(request.input_modalities, spec_.input_modalities, "input");
  if (input_modalities.size() != 1) {
    throw NotSupported("A prompt of " + std::to_string(input_modalities.size()) +
                       " parts was given; this host takes prompts of one part.");
  }
  const auto output_modalities = modality_indices(request.output_modalities, spec_.output_modalities, "output");
  Arena arena;
  cairn_prompt_part part{};
  part.modality = input_modalities.front();
  part.token_ids = {ids.data(), ids.size()};
  if (ids.empty()) part.text = {request.prompt_text.data(), request.prompt_text.size()};
  cairn_prompt_args args{};
  args.struct_size = sizeof(args);
  args.request_id = {request.id.data(), request.id.size()};
  args.parts = {&part, 1, sizeof(part)};
  args.output_modalities = to_span(output_modalities);
  args.model_kwargs = to_abi_map(request.model_kwargs, arena);
  args.arena = arena.table();
  cairn_prompt_result answer{};
  answer.struct_size = sizeof(answer);
  return ask(
      spec_, "process_prompt", [&] { return api_.process_prompt(model_, &args, &answer); },
      [&] { return read_prompt(copy_sized(&answer)); });
}

PromptResult ModelAdapter::ids_as_prompt(std::span<const std::int32_t> ids) const {
  if (spec_.signals.empty()) throw InternalError("Model \"" + spec_.name + "\" has no signal to put a prompt under.");
  PromptResult result;
  result.prompt_tokens = static_cast<std::int64_t>(ids.size());
  TensorPtr tensor = Tensor::create(kInt32, std::array{result.prompt_tokens});
  std::copy(ids.begin(), ids.end(), reinterpret_cast<std::int32_t*>(tensor->data()));
  SignalTensors entry;
  entry.value.push_back(std::move(tensor));
  result.tensors.push_back(std::move(entry));
  return result;
}

PromptResult ModelAdapter::read_prompt(const cairn_prompt_result& answer) const {
  PromptResult result;
  if (answer.prompt_tokens < 0 || answer.prompt_tokens > static_cast<std::int64_t>(kMaxPromptTokens)) {
    throw InvalidArgument("prompt_tokens is " + std::to_string(answer.prompt_tokens));
  }
  result.prompt_tokens = answer.prompt_tokens;
  check_span(answer.tensors, kMaxSignals, "tensors");
  for (std::uint64_t i = 0; i < answer.tensors.count; ++i) {
    const cairn_signal_tensors tensors = span_element(answer.tensors, i);
    if (tensors.signal >= spec_.signals.size()) {
      throw InvalidArgument("tensors[" + std::to_string(i) + "] has signal " + std::to_string(tensors.signal) +
                            ", but the model has " + std::to_string(spec_.signals.size()));
    }
    for (const SignalTensors& other : result.tensors) {
      if (other.signal == tensors.signal) {
        throw InvalidArgument("tensors has signal \"" + spec_.signals[tensors.signal] + "\" twice");
      }
    }
    result.tensors.push_back(
        {tensors.signal, from_views(tensors.tensors, false, "tensors[" + std::to_string(i) + "]")});
  }
  result.metadata = OwnedMap::copy_of(answer.metadata, "metadata");
  return result;
}

ForwardPassArgs ModelAdapter::initial_forward_args(const InitialArgs& args) {
  Arena arena;
  cairn_initial_args request{};
  request.struct_size = sizeof(request);
  request.partition = args.partition;
  request.input_modalities = to_span(args.input_modalities);
  request.output_modalities = to_span(args.output_modalities);
  request.input_signals = to_signals(args.input_signals, arena);
  request.prompt_metadata = args.prompt_metadata;
  request.model_kwargs = to_abi_map(args.model_kwargs, arena);
  request.arena = arena.table();
  cairn_forward_args answer{};
  answer.struct_size = sizeof(answer);
  return ask(
      spec_, "initial_forward_args", [&] { return api_.initial_forward_args(model_, &request, &answer); },
      [&] { return from_forward_args(answer); });
}

ForwardPassArgs ModelAdapter::partition_forward_args(const TransitionArgs& args) {
  if (api_.partition_forward_args == nullptr) {
    ForwardPassArgs done;
    done.metadata.graph_walk = args.metadata.graph_walk;
    done.request_done = true;
    return done;
  }
  Arena arena;
  const cairn_conductor_metadata metadata = to_metadata(args.metadata);
  cairn_transition_args request{};
  request.struct_size = sizeof(request);
  request.partition = args.partition;
  request.metadata = &metadata;
  request.persist_signals = to_signals(args.persist_signals, arena);
  request.incoming_connections = {args.incoming_connections.data(), args.incoming_connections.size(),
                                  sizeof(cairn_connection_state)};
  request.fwd_index = args.fwd_index;
  request.num_output_tokens = args.num_output_tokens;
  request.curr_forward_outputs = to_span(args.curr_forward_outputs);
  request.arena = arena.table();
  cairn_forward_args answer{};
  answer.struct_size = sizeof(answer);
  return ask(
      spec_, "partition_forward_args", [&] { return api_.partition_forward_args(model_, &request, &answer); },
      [&] { return from_forward_args(answer); });
}

ResourceReqConfigs ModelAdapter::request_resource_configs(const RequestConfigArgs& args) {
  if (api_.request_resource_configs == nullptr) {
    return ResourceReqConfigs::defaults(spec_, args.sampling, args.prompt_tokens, args.max_tokens);
  }
  Arena arena;
  std::vector<const cairn_forward_args*> partitions;
  for (const ForwardPassArgs& partition : args.partition_args) partitions.push_back(to_forward_args(partition, arena));
  cairn_request_config_args request{};
  request.struct_size = sizeof(request);
  request.partition_fwd_args = partitions.data();
  request.partition_count = partitions.size();
  request.model_kwargs = to_abi_map(args.model_kwargs, arena);
  request.sampling = &args.sampling;
  request.prompt_tokens = args.prompt_tokens;
  request.max_tokens = args.max_tokens;
  request.arena = arena.table();
  cairn_resource_req_config_span answer{};
  return ask(
      spec_, "request_resource_configs", [&] { return api_.request_resource_configs(model_, &request, &answer); },
      [&] { return ResourceReqConfigs::copy_of(spec_, answer, args.sampling, args.prompt_tokens, args.max_tokens); });
}

}  // namespace cairn
