import { mount } from 'svelte';
import App from './App.svelte';
import { pages, sections, start } from './routes';
import { applyTheme } from './ui/theme';
import './ui/theme.css';

applyTheme();
const target = document.getElementById('page');
if (target) mount(App, { target, props: { pages, sections, start } });
