"""Every kind of checkpoint that was once read as another matrix has tests of its true values."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

#: Kinds, and the tests (file below tests/, function) that hold their rows, means or labels.
KINDS: dict[str, tuple[str, ...]] = {
    "a quantized embedding beside other matrices": (
        "io/model/test_quantized.py: test_nvfp4_of_modelopt_and_compressed_tensors "
        "test_packed_integers_of_compressed_tensors test_int8_of_bitsandbytes test_affine_of_mlx "
        "test_forms_of_mlx_are_those_of_the_library test_mxfp4_of_gpt_oss "
        "test_forms_that_are_not_decoded_are_named_and_nothing_takes_their_place",
        "io/model/test_onnx.py: test_gather_block_quantized_of_bytes "
        "test_mat_mul_n_bits_is_the_output",
    ),
    "FP8 with scales": (
        "io/model/test_quantized.py: test_fp8_of_the_tensor_and_of_rows test_fp8_of_blocks "
        "test_rows_that_are_dead_by_their_scale_are_dead "
        "test_blocks_that_compressed_tensors_states "
        "test_factors_of_fp8_that_are_not_known_stop_the_choice",
        "workflows/test_repair.py: test_a_matrix_that_is_decoded_is_not_repaired",
    ),
    "copies for multi-token prediction": (
        "io/model/test_candidates.py: test_copies_for_multi_token_prediction_lose",
        "io/model/test_pieces.py: test_copies_for_multi_token_prediction_in_gguf",
    ),
    "pieces": (
        "io/model/test_pieces.py: test_slices_are_joined_where_the_configuration_proves_the_axis "
        "test_slices_whose_axis_is_not_proved_are_refused "
        "test_a_split_gguf_is_joined_from_any_of_its_files "
        "test_offsets_of_torch_distributed_join_pieces test_offsets_join_files_of_any_name "
        "test_slices_whose_names_differ_in_any_number "
        "test_a_layer_of_gpt_neox_and_its_configuration "
        "test_nanotron_keeps_each_tensor_in_a_folder_of_its_own "
        "test_half_of_the_vocabulary_under_any_name_is_refused "
        "test_the_length_of_the_norms_proves_the_axis test_the_folders_of_megatron "
        "test_a_model_that_is_parallel_by_layers test_runs_in_numbered_folders_are_no_slices",
        "io/model/test_candidates.py: "
        "test_half_of_the_columns_is_a_slice_where_nothing_projects_it "
        "test_flat_parameters_of_fsdp_stop_the_choice",
    ),
    "an index beside a single file": (
        "io/model/test_pieces.py: test_a_single_file_goes_before_an_old_index "
        "test_other_weights_beside_are_noted",
    ),
    "labels without proof": (
        "io/model/test_changed.py: test_model2vec "
        "test_trainable_tokens_alone_are_the_rows_of_their_ids",
        "io/model/test_candidates.py: test_the_rows_of_a_draft_head_are_those_of_its_map "
        "test_text_goes_before_codes_of_audio_where_the_sizes_prove_it "
        "test_a_tokenizer_labels_no_rows_of_other_things "
        "test_a_tokenizer_of_more_ids_than_rows_labels_nothing",
    ),
    "outputs": (
        "io/model/test_candidates.py: test_names_of_inputs_and_outputs "
        "test_an_output_over_fewer_tokens_is_measured_over_those "
        "test_a_draft_head_beside_an_embedding_is_an_output_over_its_ids",
        "io/model/test_quantized.py: test_a_quantized_output_is_left_out_and_not_known_to_be_tied",
        "comparison/test_vocabularies.py: test_tokens_without_an_output_row_are_not_compared_there",
    ),
    "names": (
        "io/model/test_candidates.py: test_names_of_inputs_and_outputs "
        "test_kinds_that_nothing_tells_apart_are_a_question_that_names_them "
        "test_the_architecture_says_the_name_of_its_embedding test_a_thinker_and_a_talker",
        "io/model/test_changed.py: test_spectral_norm_is_that_of_torch "
        "test_weight_norm_is_that_of_torch test_codebooks",
    ),
    "an output without a usable row": (
        "io/model/test_candidates.py: test_an_output_without_a_usable_row_is_left_out",
        "io/model/test_modules.py: test_an_output_without_a_usable_row_is_left_out",
    ),
    "kernels of layers": (
        "io/model/test_candidates.py: test_kernels_of_layers_are_no_embedding",
    ),
    "LoRA beside the embedding": (
        "io/model/test_changed.py: test_an_adapter_beside_the_embedding_is_merged "
        "test_factors_of_adapters test_an_adapter_of_codes_is_added_to_the_decoded_rows",
    ),
    "vectors in JSON": (
        "io/test_json_vectors.py: test_vectors_of_several_kinds_are_matrices_of_their_own "
        "test_vectors_with_names_in_each_record_are_apart test_lists_of_vectors_in_base64 "
        "test_the_index_of_records_orders_them test_words_beside_vectors_label_them",
    ),
    "tables": (
        "io/test_delimited_text.py: test_a_column_of_ids_is_an_order "
        "test_a_column_of_row_numbers_orders_the_rows test_counting_columns_are_no_dimensions "
        "test_a_column_of_classes_is_neither_a_dimension_nor_a_word "
        "test_a_trailing_separator_takes_no_column",
        "io/test_labels.py: test_a_column_of_row_numbers_orders_the_tokens "
        "test_counts_of_repeated_keys_are_summed",
    ),
    "vectors one by one, and other files": (
        "io/test_stacked_vectors.py: test_one_array_for_each_word test_tensors_that_pickle_dumps",
        "io/test_binary_formats.py: test_vectors_are_mapped test_bfloat16_of_paddle "
        "test_matrices_saved_one_after_the_other_are_listed "
        "test_numbered_words_label_the_rows_under_any_name",
        "io/test_vector_column.py: test_what_copy_of_postgresql_writes "
        "test_a_column_of_ids_is_an_order",
        "io/test_text_vectors.py: test_a_header_of_dl4j_has_three_numbers",
    ),
    "ways out": (
        "io/test_ways_out.py: test_every_step_ends_in_a_matrix test_the_words_name_the_first_step",
        "io/test_foreign.py: test_the_way_out_leads_to_the_matrix test_vocabularies_and_json "
        "test_folders_of_other_tools",
        "io/model/test_folder_labels.py: test_a_configuration_of_keras_labels_nothing "
        "test_tiktoken_model test_tekken test_sentencepiece_whatever_its_first_piece",
    ),
    "few rows, many columns": (
        "metrics/test_few_rows.py: test_a_matrix_of_few_rows_stays_within_its_memory",
    ),
    "very many tensors": (
        "io/model/test_folder_labels.py: test_very_many_tensors_are_refused_at_once",
    ),
    "baselines of another matrix": (
        "rules/test_unlike_baselines.py: test_another_quantity_cannot_be_checked "
        "test_other_facts_are_noted",
    ),
    "what a preset cannot check": (
        "rules/test_presets.py: test_what_a_matrix_does_not_say_cannot_be_checked "
        "test_a_sound_matrix_without_a_tokenizer_passes_only_if_that_is_allowed",
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_the_tests_of_a_kind_exist(kind: str) -> None:
    for line in KINDS[kind]:
        file, _, names = line.partition(": ")
        tree = ast.parse((ROOT / file).read_text("utf-8"))
        held = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
        assert set(names.split()) <= held, (file, set(names.split()) - held)
