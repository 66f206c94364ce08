// The conductor's state machine.
#include "core/conductor/conductor.hpp"

#include <algorithm>
#include <bit>
#include <boost/uuid/detail/md5.hpp>
#include <utility>

#include "core/base/error.hpp"

namespace cairn {
namespace {

// Tensors of a signal that is kept already are added to it.
void keep_persisted(std::vector<SignalTensors>& kept, std::uint32_t signal, SignalValue&& value) {
  const auto found =
      std::find_if(kept.begin(), kept.end(), [&](const SignalTensors& entry) { return entry.signal == signal; });
  if (found == kept.end()) {
    kept.push_back({signal, std::move(value)});
    return;
  }
  for (TensorPtr& tensor : value) found->value.push_back(std::move(tensor));
}

}  // namespace

std::vector<std::uint32_t> modality_indices(const std::vector<std::string>& names,
                                            const std::vector<std::string>& known, const char* what) {
  std::vector<std::uint32_t> indices;
  for (const std::string& name : names) {
    const auto found = std::find(known.begin(), known.end(), name);
    if (found == known.end()) {
      std::string all;
      for (const std::string& one : known) all += (all.empty() ? "" : ", ") + one;
      throw InvalidArgument(
          "This model has no " + std::string(what) + " modality \"" + name + "\"; it has: " + all + ".", "modalities");
    }
    indices.push_back(static_cast<std::uint32_t>(found - known.begin()));
  }
  return indices;
}

std::uint64_t request_seed(const SamplingParams& sampling, std::string_view id) {
  if (sampling.has_seed) return sampling.seed;
  boost::uuids::detail::md5 hash;
  hash.process_bytes(id.data(), id.size());
  boost::uuids::detail::md5::digest_type digest;
  hash.get_digest(digest);
  // Boost's first word holds the first four bytes with the first one on top.
  return __builtin_bswap32(digest[0]);
}

// Whether what the model answered fits its own graph.
void Conductor::check_args(std::uint32_t partition, const ForwardPassArgs& args, const char* hook) const {
  const auto fail = [&](const std::string& text) {
    throw InternalError("The model's " + std::string(hook) + " answered for partition \"" +
                        spec_.partition_name(partition) + "\" with " + text);
  };
  const ConductorMetadata& metadata = args.metadata;
  for (const std::uint32_t signal : args.unpersist) {
    if (signal >= spec_.signals.size()) fail("unpersist signal " + std::to_string(signal) + ", which does not exist.");
  }
  for (const std::uint32_t modality : metadata.input_modalities) {
    if (modality >= spec_.input_modalities.size()) fail("input modality " + std::to_string(modality) + ".");
  }
  for (const std::uint32_t modality : metadata.output_modalities) {
    if (modality >= spec_.output_modalities.size()) fail("output modality " + std::to_string(modality) + ".");
  }
  if (args.request_done) return;
  const auto& walks = spec_.partitions[partition].graph_walks;
  const std::uint32_t walk = metadata.graph_walk;
  if (std::find(walks.begin(), walks.end(), walk) == walks.end()) {
    fail("graph_walk " + spec_.walk_name(walk) + ", which is no walk of that partition.");
  }
  for (std::size_t i = 0; i < args.inputs.size(); ++i) {
    const RoutedInput& input = args.inputs[i];
    if (!spec_.waits_for(walk, input.node, input.signal)) {
      fail("an input \"" + spec_.signal_name(input.signal) + "\" for node \"" + spec_.node_name(input.node) +
           "\", which does not wait for it in walk \"" + spec_.walk_name(walk) + "\".");
    }
    for (std::size_t k = 0; k < i; ++k) {
      if (args.inputs[k].node == input.node && args.inputs[k].signal == input.signal) {
        fail("the input \"" + spec_.signal_name(input.signal) + "\" for node \"" + spec_.node_name(input.node) +
             "\" twice.");
      }
    }
  }
  if (args.inputs.empty()) {
    const auto& sections = spec_.walks[walk].sections;
    const bool self_starting = std::any_of(sections.begin(), sections.end(), [](const SectionSpec& section) {
      return section.kind == CAIRN_SECTION_NODE && section.inputs.empty();
    });
    if (!self_starting) {
      fail("no inputs for walk \"" + spec_.walk_name(walk) + "\", so that no node of it could ever run.");
    }
  }
}

WalkStart Conductor::begin_walk(std::uint32_t partition_index, Partition& partition, ForwardPassArgs args) {
  partition.metadata = std::move(args.metadata);
  partition.curr_forward_outputs.clear();
  partition.info->begin_walk(partition.metadata.graph_walk, partition.fwd_pass_number, std::move(args.step_metadata));
  return {partition_index, partition.metadata.graph_walk, partition.fwd_pass_number, std::move(args.inputs)};
}

std::vector<WalkStart> Conductor::start_request(RequestStart start) {
  if (requests_.contains(start.handle)) {
    throw InternalError("Request " + std::to_string(start.handle) + " was started twice.");
  }
  const RequestSpec& spec = start.spec;
  const auto input_modalities = modality_indices(spec.input_modalities, spec_.input_modalities, "input");
  const auto output_modalities = modality_indices(spec.output_modalities, spec_.output_modalities, "output");
  auto request = std::make_unique<Request>();
  request->max_tokens = start.max_tokens;
  request->sampling = std::make_unique<RequestSampling>(spec.sampling, start.seed, std::move(start.stop_tokens),
                                                        spec.min_tokens, spec.ignore_eos);
  std::vector<ForwardPassArgs> args;
  for (std::uint32_t i = 0; i < spec_.partitions.size(); ++i) {
    ForwardPassArgs initial = model_.initial_forward_args({i, input_modalities, output_modalities, start.prompt.tensors,
                                                           start.prompt.metadata.view(), spec.model_kwargs});
    check_args(i, initial, "initial_forward_args");
    if (initial.step_metadata.view().count > 0) {
      initial.metadata.kwargs =
          OwnedMap::merged(initial.metadata.kwargs.view(), initial.step_metadata.view(), "kwargs of the model");
    }
    args.push_back(std::move(initial));
  }
  request->configs = model_.request_resource_configs(
      {args, spec.model_kwargs, request->sampling->view(), start.prompt.prompt_tokens, start.max_tokens});
  std::vector<WalkStart> walks;
  for (std::uint32_t i = 0; i < spec_.partitions.size(); ++i) {
    Partition& partition = request->partitions.emplace_back();
    partition.info = std::make_unique<ForwardInfo>(start.handle, spec.id, i, start.seed);
    partition.info->set_request(start.prompt.prompt_tokens, start.max_tokens, request->configs);
    partition.is_done = args[i].request_done;
    if (partition.is_done) continue;
    for (const SignalTensors& tensors : start.prompt.tensors) partition.persisted.push_back(tensors);
    drop_persisted(partition, args[i].unpersist);
    walks.push_back(begin_walk(i, partition, std::move(args[i])));
  }
  requests_.emplace(start.handle, std::move(request));
  return walks;
}

void Conductor::drop_persisted(Partition& partition, std::span<const std::uint32_t> signals) {
  std::erase_if(partition.persisted, [&](const SignalTensors& entry) {
    return std::find(signals.begin(), signals.end(), entry.signal) != signals.end();
  });
}

Transition Conductor::on_walk_done(RequestHandle handle, std::uint32_t partition_index, const WalkReport& report) {
  Partition& partition = find(handle, partition_index);
  if (partition.is_done) {
    throw InternalError("Partition \"" + spec_.partition_name(partition_index) + "\" finished a walk after its end.");
  }
  for (SignalTensors& tensors : report.persisted) {
    keep_persisted(partition.persisted, tensors.signal, std::move(tensors.value));
  }
  partition.num_output_tokens += report.new_tokens;
  for (std::uint64_t signals = report.routed_signals; signals != 0; signals &= signals - 1) {
    partition.curr_forward_outputs.push_back(static_cast<std::uint32_t>(std::countr_zero(signals)));
  }
  ForwardPassArgs args = model_.partition_forward_args({partition_index, partition.metadata, partition.persisted,
                                                        partition.incoming, partition.fwd_pass_number,
                                                        partition.num_output_tokens, partition.curr_forward_outputs});
  check_args(partition_index, args, "partition_forward_args");

  Transition transition;
  const bool at_limit = partition.num_output_tokens >= find(handle).max_tokens;
  transition.length_limit = at_limit && !args.request_done;
  if (args.request_done || at_limit) {
    partition.is_done = true;
    partition.persisted.clear();
    transition.kind = request_done(handle) ? Transition::Kind::kRequestDone : Transition::Kind::kPartitionDone;
    return transition;
  }
  drop_persisted(partition, args.unpersist);
  ++partition.fwd_pass_number;
  transition.kind = Transition::Kind::kNextWalk;
  transition.next = begin_walk(partition_index, partition, std::move(args));
  return transition;
}

void Conductor::end_request(RequestHandle handle) noexcept {
  requests_.erase(handle);
}

bool Conductor::request_done(RequestHandle handle) const {
  const auto& partitions = find(handle).partitions;
  return std::all_of(partitions.begin(), partitions.end(), [](const Partition& p) { return p.is_done; });
}

ForwardInfo& Conductor::info(RequestHandle handle, std::uint32_t partition) {
  return *find(handle, partition).info;
}

const ResourceReqConfigs& Conductor::resource_configs(RequestHandle handle) const {
  return find(handle).configs;
}

const cairn_sampling_req_config& Conductor::sampling(RequestHandle handle) const {
  return find(handle).sampling->view();
}

std::int64_t Conductor::output_tokens(RequestHandle handle, std::uint32_t partition) const {
  const auto& partitions = find(handle).partitions;
  return partition < partitions.size() ? partitions[partition].num_output_tokens : 0;
}

const Conductor::Request& Conductor::find(RequestHandle handle) const {
  const auto found = requests_.find(handle);
  if (found == requests_.end()) {
    throw InternalError("Request " + std::to_string(handle) + " is not known to the conductor.");
  }
  return *found->second;
}

Conductor::Partition& Conductor::find(RequestHandle handle, std::uint32_t partition) {
  const auto found = requests_.find(handle);
  if (found == requests_.end() || partition >= found->second->partitions.size()) {
    throw InternalError("Request " + std::to_string(handle) + ", partition " + std::to_string(partition) +
                        " is not known to the conductor.");
  }
  return found->second->partitions[partition];
}

}  // namespace cairn
